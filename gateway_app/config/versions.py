"""The versions of ``config.yaml``: which keys each of them added, and how an older file gets them.

A key that is added gets a version here; a test compares this table with ``known_keys``.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured

VERSION_KEY = "_config_version"
FIRST = 1  # of a file that names no version


@dataclass(frozen=True)
class NewKey:
    path: str  # NAME stands for any name
    question: str = ""  # `configure` asks for keys that have one
    example: str = ""


def _plain(section: str, keys: tuple[str, ...]) -> tuple[NewKey, ...]:
    prefix = f"{section}." if section else ""
    return tuple(NewKey(prefix + key) for key in keys)


_UPSTREAM = ("provider", "model", "base_url", "api_key", "api_mode")
_OPTIONS = (
    "temperature",
    "max_tokens",
    "extra_body",
    "extra_headers",
    "query",
    "upstream_resume",
)
_MEDIA = ("vision", "files")
_AGENT = ("core_prompt", "instructions", "toolset", "tool_items", "fallback_models")
_MCP_SERVER = ("command", "args", "env", "url", "headers", "timeout", "approval", "enabled")
_PLATFORM = ("enabled", "owner", "profile", "toolset", "allowed_senders")
_WHATSAPP = (
    "owner",
    "profile",
    "toolset",
    "prefix_in",
    "phone_number_id",
    "access_token",
    "app_secret",
    "verify_token",
    "graph_url",
    "transport_module",
)
_WHATSAPP_QUESTIONS = (
    NewKey("whatsapp.enabled", "Answer people on WhatsApp?", "true"),
    NewKey("whatsapp.transport", "By Meta's Cloud API (cloud), or by the bridge?", "cloud"),
    NewKey("whatsapp.allowed_senders", "Which numbers get answers?", '["+491700123456"]'),
    NewKey("whatsapp.reply_prefix", "What begins each message?", '"*Bot*\\\\n"'),
)
_FIRST_KEYS = (
    _plain("", ("model", "fallback_models", "profiles", "mcp_servers", "platforms"))
    + _plain("", (VERSION_KEY,))
    + _plain("model", _UPSTREAM + _OPTIONS)
    + _plain("model", ("default", "context_length"))
    + _plain("fallback_models", _UPSTREAM + _OPTIONS)
    + _plain("fallback_models", ("default",))
    + _plain("profiles.NAME", _AGENT + _UPSTREAM + _OPTIONS)
    + _plain("profiles.NAME", ("context_length",))
    + _plain("mcp_servers.NAME", _MCP_SERVER)
    + _plain("platforms", ("api_server",))
    + _plain("platforms.api_server", ("model_name",))
)
_SECOND_KEYS = (
    _plain("model", _MEDIA)
    + _plain("fallback_models", _MEDIA)
    + _plain("profiles.NAME", ("client_tools", "approval_wait", "compact_share", "max_iterations"))
    + _plain("profiles.NAME", _MEDIA)
    + _plain("platforms", ("fake",))
    + _plain("platforms.fake", _PLATFORM)
    + _plain("platforms.fake", ("edits", "limit"))
    + _plain("", ("whatsapp",))
    + _WHATSAPP_QUESTIONS
    + _plain("whatsapp", _WHATSAPP)
)
VERSIONS: dict[int, tuple[NewKey, ...]] = {1: _FIRST_KEYS, 2: _SECOND_KEYS}
NEWEST = max(VERSIONS)


def config_version(config: Mapping[str, Any]) -> int:
    found = config.get(VERSION_KEY, FIRST)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ImproperlyConfigured(f"config.yaml: {VERSION_KEY} must be a whole number.")
    return found


def keys_since(version: int) -> Iterator[NewKey]:
    """Those that a file of this version can't have known."""
    for number in sorted(VERSIONS):
        if number > version:
            yield from VERSIONS[number]


def version_notice(config: Mapping[str, Any]) -> str:
    """What an operator should know about the version of the file; empty for the newest."""
    version = config_version(config)
    if not config or version == NEWEST:
        return ""
    if version > NEWEST:
        return (
            f"config.yaml has version {version}, and this server knows up to {NEWEST}: "
            "keys that it does not know have no effect."
        )
    names = ", ".join(key.path for key in keys_since(version) if key.question)
    return (
        f"config.yaml has version {version}; version {NEWEST} adds {names} and others. "
        "'manage.py configure' asks for them and writes the file; docs/configuration.md has all."
    )
