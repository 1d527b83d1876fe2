"""``HERMES_WEB_FETCH``: the hosts whose pages the tool web_fetch may read."""

import re

from django.core.exceptions import ImproperlyConfigured

NAME = "HERMES_WEB_FETCH"
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_ENTRY = re.compile(rf"(\*|(\*\.)?{_LABEL}(\.{_LABEL})*)(:[0-9]{{1,5}})?")


def read_web_hosts(given: str) -> tuple[str, ...]:
    """``example.org``, ``*.example.org`` for its subdomains, ``*`` for all; none: no such tool."""
    hosts = []
    for entry in given.lower().split(","):
        entry = entry.strip()
        if not entry:
            continue
        if not _ENTRY.fullmatch(entry):
            raise ImproperlyConfigured(
                f"{NAME} has {entry!r}; an entry is a host such as docs.python.org, *.python.org "
                "for subdomains, or * for every public host, and may end with a port."
            )
        hosts.append(entry)
    return tuple(hosts)
