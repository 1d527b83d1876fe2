"""The names that a toolset may have: a mistyped one would leave out a tool without a word."""

import difflib
from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

NEAR_MISS = 0.7  # of difflib


def check_profiles() -> None:
    """For the start: those of config.yaml. The admin checks the others when they are saved."""
    for profile in settings.HERMES_PROFILES.values():
        check_toolset(profile.toolset, profile.location)


def check_toolset(names: tuple[str, ...] | None, location: str) -> None:
    for index, name in enumerate(names or ()):
        if not _is_known(name):
            raise ImproperlyConfigured(f"{location}.toolset[{index}] {_problem(name)}")


def _is_known(name: str) -> bool:
    """The tools of an MCP server are known once it is connected: any name behind its label is."""
    label, _, tool = name.partition(".")
    if label in _labels() and (tool or name == label):
        return True
    return name in _own_tools()


def _problem(name: str) -> str:
    known = sorted(_own_tools()) + sorted(_labels())
    similar = difflib.get_close_matches(name.lower(), known, n=1, cutoff=NEAR_MISS)
    if similar:
        return f"is {name!r}, which is no tool; write {similar[0]}."
    return f"is {name!r}, which is no tool and no MCP server. The names are: {', '.join(known)}."


def _labels() -> set[str]:
    """Those of disabled MCP servers too: a server may be off for a while."""
    return set(settings.HERMES_CONFIG.get("mcp_servers") or ())


@cache
def _own_tools() -> frozenset[str]:
    """Whether or not they work here: the terminal may lack its sandbox, or be turned off."""
    names: set[str] = set()
    for maker in settings.HERMES_TOOL_MAKERS:
        names |= import_string(maker)("unsandboxed", settings.HERMES_TERMINAL_LIMITS).keys()
    return frozenset(names)
