"""Strict readers for the environment and ``config.yaml``.

Every reader names the variable in its error: a server that starts with a wrong value is worse
than one that does not start.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.yaml_file import load_yaml

# Browser extensions and desktop applications have their own schemes.
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^\s/?#@:*\[\]]+)(:[0-9]{1,5})?")
_WEB_ADDRESS = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?", re.IGNORECASE)


class Env:
    """Values from the environment first, then from ``config.yaml``, then the default."""

    def __init__(self, environ: Mapping[str, str], config: Mapping[str, Any]) -> None:
        self.environ = environ
        self.config = config

    def text(self, name: str, default: str = "", *, config_path: str = "") -> str:
        if name in self.environ:
            return self.environ[name].strip()
        found = self._configured(config_path)
        if found is None:
            return default
        if not isinstance(found, str):
            raise ImproperlyConfigured(f"config.yaml: {config_path} must be text, not {found!r}.")
        return found.strip()

    def secret(self, name: str, *, config_path: str = "") -> str:
        """``NAME``, or the content of the file that ``NAME_FILE`` names."""
        path = self.environ.get(f"{name}_FILE")
        if path is None:
            return self.text(name, config_path=config_path)
        if name in self.environ:
            raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both.")
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(
                f"{name}_FILE: cannot read {path}: {error.strerror}."
            ) from error

    def integer(
        self, name: str, default: int, *, low: int, high: int, config_path: str = ""
    ) -> int:
        raw = self.environ.get(name, self._configured(config_path))
        if raw is None:
            return default
        try:
            value = int(raw)
        except (TypeError, ValueError):
            raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.") from None
        if not low <= value <= high:
            raise ImproperlyConfigured(f"{name} must be from {low} to {high}, not {value}.")
        return value

    def seconds(self, name: str, default: float, *, low: float, high: float) -> float:
        return self._number(name, default, low, high, "seconds")

    def optional_seconds(self, name: str, *, low: float, high: float) -> float | None:
        """None where the variable is not set."""
        if name not in self.environ:
            return None
        return self._number(name, low, low, high, "seconds")

    def minutes(self, name: str, default: float, *, low: float, high: float) -> float:
        return self._number(name, default, low, high, "minutes")

    def share(self, name: str, default: float) -> float:
        raw = self.environ.get(name)
        if raw is None:
            return default
        try:
            value = float(raw)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 1:
            raise ImproperlyConfigured(f"{name} must be a number from 0 to 1, not {raw!r}.")
        return value

    def _number(self, name: str, default: float, low: float, high: float, unit: str) -> float:
        raw = self.environ.get(name)
        if raw is None:
            return default
        try:
            value = float(raw)
        except ValueError:
            raise ImproperlyConfigured(f"{name} must be a number of {unit}, not {raw!r}.") from None
        if not low <= value <= high:
            raise ImproperlyConfigured(f"{name} must be from {low} to {high} {unit}, not {raw}.")
        return value

    def choice(
        self, name: str, default: str, choices: tuple[str, ...], *, config_path: str = ""
    ) -> str:
        value = self.text(name, default, config_path=config_path)
        if value not in choices:
            raise ImproperlyConfigured(
                f"{name} must be one of {', '.join(choices)}, not {value!r}."
            )
        return value

    def origins(self, name: str) -> frozenset[str]:
        """A comma-separated list of web origins as browsers write them, or ``*``."""
        entries = self.text(name).lower().split(",")
        found = [entry.strip() for entry in entries if entry.strip()]
        for entry in found:
            if entry != "*" and not _ORIGIN.fullmatch(entry):
                raise ImproperlyConfigured(
                    f"{name} must list origins such as https://chat.example.com:8443, "
                    f"without a path, not {entry!r}."
                )
        if "*" in found and len(found) > 1:
            raise ImproperlyConfigured(f"{name} must be * alone, or a list of origins without it.")
        return frozenset(found)

    def web_address(self, name: str) -> str:
        """An http or https address with a host, or nothing."""
        found = self.text(name)
        if found and not _WEB_ADDRESS.fullmatch(found):
            raise ImproperlyConfigured(
                f"{name} must be an address such as https://gateway.example:8642, not {found!r}."
            )
        return found

    def web_origin(self, name: str) -> str:
        """An http or https origin as browsers write it, or nothing."""
        found = self.text(name).lower()
        is_web = found.startswith(("http://", "https://"))
        if found and not (is_web and _ORIGIN.fullmatch(found)):
            raise ImproperlyConfigured(
                f"{name} must be an origin such as https://hermes.example, not {found!r}."
            )
        return found

    def _configured(self, path: str) -> Any:
        """The value of a dotted path of config.yaml; None where it or the path is missing."""
        if not path:
            return None
        found: Any = self.config
        for step in path.split("."):
            if not isinstance(found, Mapping):
                return None
            found = found.get(step)
        return found


def read_config(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        loaded = load_yaml(path.read_text()) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ImproperlyConfigured(f"{path.name} cannot be read: {error}") from error
    if not isinstance(loaded, dict):
        raise ImproperlyConfigured(f"{path.name} must hold a mapping at its top level.")
    return loaded
