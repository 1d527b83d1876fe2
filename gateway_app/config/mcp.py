"""``mcp_servers`` of ``config.yaml``, read strictly: every error names the entry.

Errors are ``ValueError``: tools import this module, and nothing of Django.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway_app.config.known_keys import MCP_SERVER

DEFAULT_TIMEOUT_SECS = 120.0
MAX_TIMEOUT_SECS = 86_400
RESERVED_LABEL = "hermes"  # the tools of the server itself
APPROVALS = ("none", "always", "client")
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,64}")
_URL = re.compile(r"https?://[^\s/?#]+\S*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_COMMAND_KEYS: tuple[str, ...] = ("args", "env")
_URL_KEYS: tuple[str, ...] = ("headers",)

Entry = Mapping[str, Any]


@dataclass(frozen=True)
class McpServer:
    """An MCP server: a command, which is used over its pipes, or a URL, over streamable HTTP."""

    label: str
    command: str = ""
    # Not in the repr: arguments, variables, URLs and headers may contain tokens.
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_secs: float = DEFAULT_TIMEOUT_SECS  # for one call
    approval: str = "none"  # always: each call waits for an operator; client: for its owner


def read_mcp_servers(config: Mapping[str, Any]) -> tuple[McpServer, ...]:
    """The enabled servers, in the order of ``config``; a ``ValueError`` names a wrong entry."""
    found = config.get("mcp_servers")
    if found is None:
        return ()
    if not isinstance(found, Mapping):
        raise ValueError("config.yaml: mcp_servers must be a mapping of labels to servers.")
    servers = []
    for label, entry in found.items():
        server = _read_server(label, entry)  # a disabled server is checked, too
        if _read_enabled(f"mcp_servers.{label}", entry):
            servers.append(server)
    return tuple(servers)


def _read_server(label: Any, entry: Any) -> McpServer:
    place = f"mcp_servers.{label}"
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise _wrong(place, "must be named with 1 to 64 letters, digits, _ or -")
    if label == RESERVED_LABEL:
        raise _wrong(place, "is the name of the server's own tools; choose another")
    if not isinstance(entry, Mapping):
        raise _wrong(place, "must be a mapping with command or url")
    problem = MCP_SERVER.problem(entry, place)
    if problem:
        raise ValueError(f"config.yaml: {problem}.")
    _check_kind(place, entry)
    return McpServer(
        label=label,
        command=_text(place, entry, "command"),
        args=_args(place, entry),
        env=_texts_by_name(place, entry, "env"),
        url=_url(place, entry),
        headers=_headers(place, entry),
        timeout_secs=_timeout(place, entry),
        approval=_approval(place, entry),
    )


def _check_kind(place: str, entry: Entry) -> None:
    if ("command" in entry) == ("url" in entry):
        raise _wrong(place, "must have exactly one of command and url")
    kind = "url"
    keys_of_the_other = _COMMAND_KEYS
    if "command" in entry:
        kind = "command"
        keys_of_the_other = _URL_KEYS
    for key in keys_of_the_other:
        if key in entry:
            raise _wrong(f"{place}.{key}", f"does not go with {kind}")


def _text(place: str, entry: Entry, key: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str) or (key in entry and not value.strip()) or "\0" in value:
        raise _wrong(f"{place}.{key}", "must be text")
    return value.strip()


def _args(place: str, entry: Entry) -> tuple[str, ...]:
    values = entry.get("args", [])
    if not isinstance(values, list):
        raise _wrong(f"{place}.args", "must be a list of texts")
    for number, value in enumerate(values):
        if not isinstance(value, str) or "\0" in value:
            raise _wrong(f"{place}.args[{number}]", "must be text; put it in quotes")
    return tuple(values)


def _texts_by_name(place: str, entry: Entry, key: str) -> dict[str, str]:
    values = entry.get(key, {})
    if not isinstance(values, Mapping):
        raise _wrong(f"{place}.{key}", "must be a mapping of names to texts")
    for name, value in values.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise _wrong(f"{place}.{key}", f"has {name!r}, which cannot be a name")
        if not isinstance(value, str) or "\0" in value:
            raise _wrong(f"{place}.{key}.{name}", "must be text; put it in quotes")
    return dict(values)


def _headers(place: str, entry: Entry) -> dict[str, str]:
    values = _texts_by_name(place, entry, "headers")
    for name, value in values.items():
        if not _HEADER_NAME.fullmatch(name):
            raise _wrong(f"{place}.headers", f"has {name!r}, which cannot be the name of a header")
        if not value.isascii() or not value.isprintable():
            raise _wrong(f"{place}.headers.{name}", "must be printable ASCII")
    return values


def _url(place: str, entry: Entry) -> str:
    url = _text(place, entry, "url")
    if url and not _URL.fullmatch(url):
        raise _wrong(f"{place}.url", "must be an http or https address")
    return url


def _timeout(place: str, entry: Entry) -> float:
    value = entry.get("timeout", DEFAULT_TIMEOUT_SECS)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= MAX_TIMEOUT_SECS:
        raise _wrong(
            f"{place}.timeout", f"must be a number of seconds, above 0 and up to {MAX_TIMEOUT_SECS}"
        )
    return float(value)


def _approval(place: str, entry: Entry) -> str:
    value = entry.get("approval", "none")
    if value not in APPROVALS:
        raise _wrong(f"{place}.approval", f"must be one of {', '.join(APPROVALS)}")
    return str(value)


def _read_enabled(place: str, entry: Entry) -> bool:
    value = entry.get("enabled", True)
    if not isinstance(value, bool):
        raise _wrong(f"{place}.enabled", "must be true or false")
    return value


def _wrong(place: str, problem: str) -> ValueError:
    """Without the value, which may be a secret."""
    return ValueError(f"config.yaml: {place} {problem}.")
