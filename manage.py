#!/usr/bin/env python
import os
import signal
import sys

if __name__ == "__main__":
    # Twisted loads TLS where it finds pyOpenSSL: memory that is not needed, as a proxy has the
    # certificates.
    sys.modules["OpenSSL"] = None  # type: ignore[assignment]
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(
            f"FAIL settings  {error}"
        )  # the message names the variable; a traceback would hide it
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)  # as shells do; the command has reported its progress
    except BrokenPipeError:
        # The reader of the output has closed it. Without this, the last flush would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
