"""``config.yaml`` as a whole: its sections, and the model that it names."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.environment import Env
from gateway_app.config.known_keys import sections

BUILTIN = "builtin"
EXAMPLE = "model: {{provider: ollama, default: {name}}}"


def check_config(loaded: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The config with `model` as a mapping; an error names the first key that is wrong."""
    config = dict(loaded)
    config["model"] = _model_section(config.get("model"), environ)
    _require_mapping(config, "platforms", "")
    _require_mapping(config.get("platforms") or {}, "api_server", "platforms.")
    for path, section, given in sections(config):
        problem = section.problem(given, path)
        if problem:
            raise ImproperlyConfigured(f"config.yaml: {problem}.")
    return config


def _require_mapping(given: Mapping[str, Any], name: str, prefix: str) -> None:
    value = given.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise ImproperlyConfigured(f"config.yaml: {prefix}{name} must be a mapping.")


def _model_section(given: Any, environ: Mapping[str, str]) -> dict[str, Any]:
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        if environ.get("HERMES_PROVIDER", BUILTIN) == BUILTIN:
            example = EXAMPLE.format(name=given)
            raise ImproperlyConfigured(
                "config.yaml: model is a name without a provider. "
                f"Write {example!r}, with your provider, or set HERMES_PROVIDER."
            )
        return {"default": given}
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured("config.yaml: model must be a mapping, or a model's name.")
    section = dict(given)
    if "model" in section:
        if "default" in section:
            raise ImproperlyConfigured("config.yaml: model: set default or model, not both.")
        section["default"] = section.pop("model")
    return section


def default_provider(env: Env) -> str:
    """The provider where none is named; a model that is named must not become the built-in one."""
    if env.text("HERMES_PROVIDER", config_path="model.provider"):
        return BUILTIN  # one is named, so this is not used
    if env.text("HERMES_BASE_URL", config_path="model.base_url"):
        return "custom"
    for name, path in (("HERMES_MODEL", "model.default"), ("HERMES_API_KEY", "model.api_key")):
        if env.secret(name, config_path=path):
            raise ImproperlyConfigured(
                f"HERMES_PROVIDER is required when {name} is set: "
                "in the environment, or as provider in the section model of config.yaml."
            )
    return BUILTIN
