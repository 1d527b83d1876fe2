#!/usr/bin/env python
import os
import signal
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(
            f"FAIL settings  {error}"
        )  # the message names the variable: a traceback would bury it
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)  # as shells count it; the command has told how far it came
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # or the last flush would complain
        sys.exit(128 + signal.SIGPIPE)  # whoever read the output has seen enough
