"""The models that answer, and their fallbacks; every error names the setting or the entry."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.known_keys import FALLBACK_MODEL, UPSTREAM_KEYS
from gateway_app.config.model_options import OPTIONS, read_options
from gateway_app.config.presets.registry import PRESETS

# provider, model, base_url, api_key and api_mode are text; options is a mapping, see OPTIONS.
Model = dict[str, Any]

API_MODES = ("chat_completions", "codex_responses")


def read_models(first: Model, fallbacks: Any, providers: tuple[str, ...]) -> tuple[Model, ...]:
    """The model of the settings, then the fallbacks of config.yaml in their order."""
    first = _with_default_address(first)
    _check_model(first, _setting_name)
    return (first, *read_fallbacks(fallbacks, first, providers))


def _with_default_address(model: Model) -> Model:
    preset = PRESETS.get(model["provider"])
    if preset is None or model["base_url"]:
        return model
    return model | {"base_url": preset.base_url}


def _setting_name(field: str) -> str:
    return f"HERMES_{field.upper()}"


def _entry_name(place: str, field: str) -> str:
    return f"{place}.{field}"


def _check_model(model: Model, name_of: Callable[[str], str]) -> None:
    """``name_of`` gives the name under which the operator sets a field."""
    if model["base_url"] and not re.fullmatch(r"https?://[^\s/?#]+\S*", model["base_url"]):
        raise ImproperlyConfigured(f"{name_of('base_url')} must be an http or https address.")
    for field in UPSTREAM_KEYS:
        if "${" in model[field]:  # Hermes replaces it
            raise ImproperlyConfigured(
                f"{name_of(field)} has a reference to a variable, which is not replaced here."
            )
    provider = model["provider"]
    preset = PRESETS.get(provider)
    needed = []
    if preset is not None:
        needed += ["model", "base_url"]
        if preset.needs_key:
            needed.append("api_key")
    for field in needed:
        if not model[field]:
            raise ImproperlyConfigured(
                f"{name_of(field)} is required when {name_of('provider')} is {provider}."
            )
    if not model["api_key"].isascii() or not model["api_key"].isprintable():
        raise ImproperlyConfigured(
            f"{name_of('api_key')} must be printable ASCII: it is sent in a header."
        )


def public_address(model: Model) -> str:
    """The address without user name, password and query, which may be secrets."""
    parts = urlsplit(model["base_url"])
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", "")).rstrip("/")


def describe(model: Model) -> str:
    """For operators: which model answers, and where it is."""
    preset = PRESETS.get(model["provider"])
    if preset is None:
        return f"the {model['provider']} model"
    return f"{model['model']} ({preset.name}: {preset.title}) at {public_address(model)}"


def read_fallbacks(
    given: Any,
    first: Model,
    providers: tuple[str, ...],
    place: str = "config.yaml: fallback_models",
) -> tuple[Model, ...]:
    """``fallback_models`` of config.yaml: models of the same upstream, or other upstreams."""
    if given is None:
        return ()
    if not isinstance(given, list):
        raise ImproperlyConfigured(f"{place} must be a list.")
    models = []
    for number, entry in enumerate(given):
        models.append(read_model(entry, first, providers, f"{place}[{number}]"))
    return tuple(models)


def read_model(entry: Any, first: Model, providers: tuple[str, ...], place: str) -> Model:
    """The name of a model on the same upstream as the first, or a mapping with another upstream."""
    if isinstance(entry, str):
        entry = {"model": entry}
    fields = _read_fields(entry, place)
    if "default" in fields:  # the name that the first model's section has for it
        if "model" in fields:
            raise ImproperlyConfigured(f"{place}: set model or default, not both.")
        fields["model"] = fields.pop("default")
    # Another server must not get the first one's settings, least of all its key.
    is_elsewhere = "provider" in fields or "base_url" in fields
    inherited = first
    if is_elsewhere:
        inherited = {
            "provider": "custom",
            "base_url": "",
            "api_key": "",
            "api_mode": API_MODES[0],
            "options": {},
        }
    options = inherited["options"] | read_options(entry, place)
    model = _with_default_address(inherited | {"model": ""} | fields | {"options": options})
    for name, choices in (("provider", providers), ("api_mode", API_MODES)):
        if model[name] not in choices:
            raise ImproperlyConfigured(
                f"{place}.{name} must be one of {', '.join(choices)}, not {model[name]!r}."
            )
    if not is_elsewhere and not model["model"]:
        raise ImproperlyConfigured(f"{place}.model is required.")
    if not is_elsewhere and model["provider"] == "builtin":
        raise ImproperlyConfigured(
            f"{place}.provider is required: the built-in provider has only one model."
        )
    _check_model(model, partial(_entry_name, place))
    return model


def _read_fields(entry: Any, place: str) -> dict[str, str]:
    """All but the options."""
    if not isinstance(entry, dict):
        raise ImproperlyConfigured(f"{place} must be a model's name or a mapping, not {entry!r}.")
    problem = FALLBACK_MODEL.problem(entry, place)
    if problem:
        raise ImproperlyConfigured(f"{problem}.")
    fields = {}
    for name, value in entry.items():
        if name in OPTIONS:
            continue
        if not isinstance(value, str):
            raise ImproperlyConfigured(f"{place}.{name} must be text.")
        fields[name] = value.strip()
    return fields
