"""Messaging platforms of config.yaml: who owns their turns, which agent answers, who may write."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.known_keys import mapping
from gateway_app.config.profiles import read_toolset

EVERY_SENDER = "*"
WHATSAPP = "whatsapp"  # its section is at the top level, as in Hermes' own file


@dataclass(frozen=True)
class PlatformConfig:
    """What all platforms have; ``options`` is the whole section, for keys of one platform."""

    name: str
    owner: str = ""  # a user name; empty means the first admin
    profile: str = ""  # empty means the default agent
    toolset: tuple[str, ...] | None = None  # None: all tools of the profile but the terminal
    allowed_senders: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict)

    def allows(self, sender_id: str) -> bool:
        return EVERY_SENDER in self.allowed_senders or bare_id(sender_id) in self.allowed_senders


def bare_id(sender_id: str) -> str:
    """A telephone number as it is written, with or without ``+`` and the platform's suffix."""
    return sender_id.split("@")[0].split(":")[0].removeprefix("+")


def read_platforms(config: Mapping[str, Any], names: Iterable[str]) -> dict[str, PlatformConfig]:
    """The platforms that are enabled, of those that this server has."""
    found = {}
    for name in names:
        path = f"platforms.{name}"
        given = mapping(config.get("platforms")).get(name)
        if name == WHATSAPP:
            path = name
            given = config.get(name)
        if given is not None:
            read, is_enabled = _read(name, f"config.yaml: {path}", given)
            if is_enabled:
                found[name] = read
    return found


def _read(name: str, place: str, given: Any) -> tuple[PlatformConfig, bool]:
    """Checked also where it is not enabled."""
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured(f"{place} must be a mapping.")
    is_enabled = given.get("enabled", False)
    if not isinstance(is_enabled, bool):
        raise ImproperlyConfigured(f"{place}.enabled must be true or false.")
    toolset = None
    if given.get("toolset") is not None:
        toolset = read_toolset(given, place)
    config = PlatformConfig(
        name=name,
        owner=_text(given, "owner", place),
        profile=_text(given, "profile", place),
        toolset=toolset,
        allowed_senders=_senders(given, place),
        options=given,
    )
    return config, is_enabled


def _text(given: Mapping[str, Any], key: str, place: str) -> str:
    value = given.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ImproperlyConfigured(f"{place}.{key} must be text.")
    return value.strip()


def _senders(given: Mapping[str, Any], place: str) -> frozenset[str]:
    """Numbers may be written without quotes; YAML reads them as integers."""
    values = given.get("allowed_senders")
    if values is None:
        return frozenset()
    if not isinstance(values, list):
        raise ImproperlyConfigured(f"{place}.allowed_senders must be a list of senders, or of '*'.")
    found = set()
    for number, value in enumerate(values):
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not is_integer and not (isinstance(value, str) and value.strip()):
            raise ImproperlyConfigured(
                f"{place}.allowed_senders[{number}] must be a sender's number, in quotes."
            )
        found.add(bare_id(str(value).strip()))
    return frozenset(found)
