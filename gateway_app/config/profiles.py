"""``profiles`` of config.yaml, and the models that a profile uses."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.known_keys import PROFILE, UPSTREAM_KEYS
from gateway_app.config.model_options import read_options
from gateway_app.config.models import Model, read_fallbacks, read_model
from responses_app.agent_profiles import (
    CLIENT_TOOL_MODES,
    NO_CORE_PROMPT,
    NO_FALLBACKS,
    REPLACE,
    TOOL_ITEM_FORMS,
    AgentProfile,
)

MAX_NAME_CHARS = 100
MAX_CONTEXT_LENGTH = 100_000_000
MAX_ITERATIONS = 10_000


def models_of(
    profile: AgentProfile, models: tuple[Model, ...], providers: tuple[str, ...]
) -> tuple[Model, ...]:
    """The model of the profile, then its fallbacks; ``models`` are those of the server."""
    own = models[0]
    if profile.upstream.keys() & set(UPSTREAM_KEYS):
        own = read_model(profile.upstream, own, providers, profile.location)
    elif profile.upstream:  # the server's model, with other options
        own = own | {"options": own["options"] | read_options(profile.upstream, profile.location)}
    given = profile.fallback_models
    if given is None:
        return (own, *models[1:])
    if given == NO_FALLBACKS:
        return (own,)
    place = f"{profile.location}: fallback_models"
    return (own, *read_fallbacks(given, own, providers, place))


def read_profiles(
    given: Any, models: tuple[Model, ...], providers: tuple[str, ...]
) -> dict[str, AgentProfile]:
    """Every error names the entry, but not its value, which may be a secret."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured("config.yaml: profiles must be a mapping of names to profiles.")
    found = {}
    for name, entry in given.items():
        if not _is_name(name):
            raise ImproperlyConfigured(
                f"config.yaml: profiles has {name!r}, which cannot be a name; put it in quotes."
            )
        if entry is None:
            entry = {}
        found[name] = _read(name, entry)
        models_of(found[name], models, providers)  # raises where they can't be used
    return found


def _is_name(name: Any) -> bool:
    if not isinstance(name, str) or not name.isprintable():
        return False
    return 0 < len(name) <= MAX_NAME_CHARS


def _read(name: str, entry: Any) -> AgentProfile:
    place = f"config.yaml: profiles.{name}"
    if not isinstance(entry, Mapping):
        raise ImproperlyConfigured(f"{place} must be a mapping.")
    problem = PROFILE.problem(entry, place)
    if problem:
        raise ImproperlyConfigured(f"{problem}.")
    upstream: dict[str, Any] = read_options(entry, place)
    for field in UPSTREAM_KEYS:
        value = _text(entry, field, place)
        if value:
            upstream[field] = value
    return AgentProfile(
        name=name,
        location=place,
        instructions=_text(entry, "instructions", place),
        core_prompt=_core_prompt(entry, place),
        toolset=read_toolset(entry, place),
        tool_items=_choice(entry, "tool_items", TOOL_ITEM_FORMS, place),
        client_tools=_choice(entry, "client_tools", CLIENT_TOOL_MODES, place) or REPLACE,
        approval_wait=_boolean(entry, "approval_wait", place),
        upstream=upstream,
        fallback_models=entry.get("fallback_models"),
        context_window=_number(entry, "context_length", place, MAX_CONTEXT_LENGTH),
        compact_share=_share(entry, place),
        max_iterations=_number(entry, "max_iterations", place, MAX_ITERATIONS),
    )


def _core_prompt(entry: Mapping[str, Any], place: str) -> str:
    if entry.get("core_prompt") is False:  # YAML reads `off` and `no` as this
        return NO_CORE_PROMPT
    return _text(entry, "core_prompt", place)


def _text(entry: Mapping[str, Any], field: str, place: str) -> str:
    value = entry.get(field)
    if value is None:
        return ""
    if not isinstance(value, str) or "\0" in value:
        raise ImproperlyConfigured(f"{place}.{field} must be text.")
    return value.strip()


def _choice(entry: Mapping[str, Any], field: str, choices: Sequence[str], place: str) -> str:
    value = _text(entry, field, place)
    if value and value not in choices:
        raise ImproperlyConfigured(f"{place}.{field} must be one of {', '.join(choices)}.")
    return value


def _boolean(entry: Mapping[str, Any], field: str, place: str) -> bool:
    value = entry.get(field)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise ImproperlyConfigured(f"{place}.{field} must be true or false.")
    return value


def read_toolset(entry: Mapping[str, Any], place: str) -> tuple[str, ...] | None:
    names = entry.get("toolset")
    if names is None:
        return None
    if not isinstance(names, list):
        raise ImproperlyConfigured(
            f"{place}.toolset must be a list of names of tools or MCP servers."
        )
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise ImproperlyConfigured(f"{place}.toolset[{number}] must be text.")
    return tuple(names)


def _number(entry: Mapping[str, Any], field: str, place: str, high: int) -> int:
    """0 and an absent value mean that of the server."""
    value = entry.get(field, 0)
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= high:
        raise ImproperlyConfigured(f"{place}.{field} must be a whole number from 0 to {high}.")
    return int(value)


def _share(entry: Mapping[str, Any], place: str) -> float | None:
    value = entry.get("compact_share")
    if value is None:
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1:
        raise ImproperlyConfigured(f"{place}.compact_share must be a number from 0 to 1.")
    return float(value)
