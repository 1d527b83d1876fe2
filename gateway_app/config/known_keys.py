"""The keys of config.yaml by section. An unknown key stops the start or is reported as ignored.

Nothing of Django: tools import the reader of MCP servers, which uses this module.
"""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway_app.config import hermes_keys

NEAR_MISS = 0.75  # of difflib: `fallbacks` and `fallback_models` are just that similar


@dataclass(frozen=True)
class Section:
    keys: tuple[str, ...]
    hermes_keys: frozenset[str] = frozenset()  # ignored
    # Hermes may have more keys here in its next version: an unknown one is ignored.
    is_shared: bool = False
    synonyms: Mapping[str, str] = field(default_factory=dict)  # right keys for common mistakes

    def problem(self, given: Mapping[Any, Any], path: str) -> str:
        """What is wrong with the first key that is not known; empty if nothing is."""
        for key in given:
            problem = self._problem_of(str(key))
            if problem:
                return f"{join(path, key)} {problem}"
        return ""

    def ignored(self, given: Mapping[Any, Any]) -> list[str]:
        return [str(key) for key in given if key not in self.keys]

    def _problem_of(self, key: str) -> str:
        if key in self.keys or key in self.hermes_keys:
            return ""
        meant = self.synonyms.get(key) or self._similar(key)
        if meant:
            return f"is unknown; write {meant}"
        if self.is_shared:
            return ""
        return f"is not one of {', '.join(self.keys)}"

    def _similar(self, key: str) -> str:
        found = difflib.get_close_matches(key.lower(), self.keys, n=1, cutoff=NEAR_MISS)
        if found:
            return found[0]
        return ""


UPSTREAM_KEYS = ("provider", "model", "base_url", "api_key", "api_mode")
OPTION_KEYS = (
    "temperature",
    "max_tokens",
    "extra_body",
    "extra_headers",
    "query",
    "upstream_resume",
    "vision",
    "files",
)
_MODEL_KEYS = (*UPSTREAM_KEYS, "default", "context_length", *OPTION_KEYS)
_OPTION_SYNONYMS = {
    "headers": "extra_headers",
    "max_output_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "extra_query": "query",
}
_UPSTREAM_SYNONYMS = _OPTION_SYNONYMS | {"name": "model", "url": "base_url", "key": "api_key"}
_PROFILE_SYNONYMS = _UPSTREAM_SYNONYMS | {
    "default": "model",
    "tools": "toolset",
    "prompt": "instructions",
    "system_prompt": "instructions",
    "context_window": "context_length",
}
_TOP_LEVEL_SYNONYMS = {"fallback": "fallback_models", "agents": "profiles"}
for _key in _MODEL_KEYS:
    _TOP_LEVEL_SYNONYMS[_key] = f"model.{_key}, indented below model"

TOP_LEVEL = Section(
    (
        "model",
        "fallback_models",
        "profiles",
        "mcp_servers",
        "platforms",
        "whatsapp",
        "_config_version",
    ),
    hermes_keys.TOP_LEVEL,
    is_shared=True,
    synonyms=_TOP_LEVEL_SYNONYMS,
)
MODEL = Section(
    _MODEL_KEYS,
    hermes_keys.MODEL,
    synonyms=_UPSTREAM_SYNONYMS | {"context_window": "context_length"},
)
FALLBACK_MODEL = Section((*UPSTREAM_KEYS, "default", *OPTION_KEYS), synonyms=_UPSTREAM_SYNONYMS)
PROFILE = Section(
    (
        "core_prompt",
        "instructions",
        "toolset",
        "tool_items",
        "client_tools",
        "approval_wait",
        "fallback_models",
        "context_length",
        "compact_share",
        "max_iterations",
        *UPSTREAM_KEYS,
        *OPTION_KEYS,
    ),
    synonyms=_PROFILE_SYNONYMS,
)
MODEL_OPTIONS = Section(OPTION_KEYS, synonyms=_OPTION_SYNONYMS)
MCP_SERVER = Section(
    ("command", "args", "env", "url", "headers", "timeout", "approval", "enabled"),
    hermes_keys.MCP_SERVER,
    synonyms={"cmd": "command", "environment": "env"},
)
PLATFORMS = Section(("api_server", "fake"), is_shared=True)
_PLATFORM_KEYS = ("enabled", "owner", "profile", "toolset", "allowed_senders")
_PLATFORM_SYNONYMS = {"allowed_users": "allowed_senders", "tools": "toolset", "model": "profile"}
FAKE = Section((*_PLATFORM_KEYS, "edits", "limit"), synonyms=_PLATFORM_SYNONYMS)
WHATSAPP = Section(
    (
        *_PLATFORM_KEYS,
        "transport",
        "reply_prefix",
        "prefix_in",
        "phone_number_id",
        "access_token",
        "app_secret",
        "verify_token",
        "graph_url",
        "transport_module",
    ),
    is_shared=True,
    synonyms=_PLATFORM_SYNONYMS | {"prefix": "reply_prefix"},
)
API_SERVER = Section(
    ("model_name",), hermes_keys.PLATFORM, is_shared=True, synonyms={"model": "model_name"}
)


def ignored_keys(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of a config.yaml without problems that have no effect here, by their paths."""
    found = []
    for path, section, given in sections(config):
        for key in section.ignored(given):
            found.append(join(path, key))
    return tuple(found)


def sections(config: Mapping[str, Any]) -> Iterator[tuple[str, Section, Mapping[str, Any]]]:
    """Those that may have keys of Hermes; the readers of the others check theirs."""
    yield "", TOP_LEVEL, config
    yield "model", MODEL, mapping(config.get("model"))
    platforms = mapping(config.get("platforms"))
    yield "platforms", PLATFORMS, platforms
    yield "platforms.api_server", API_SERVER, mapping(platforms.get("api_server"))
    yield "platforms.fake", FAKE, mapping(platforms.get("fake"))
    yield "whatsapp", WHATSAPP, mapping(config.get("whatsapp"))
    for label, entry in mapping(config.get("mcp_servers")).items():
        yield f"mcp_servers.{label}", MCP_SERVER, mapping(entry)


def join(path: str, key: Any) -> str:
    return f"{path}.{key}".removeprefix(".")


def mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    return {}
