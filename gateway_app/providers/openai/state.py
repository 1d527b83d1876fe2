"""The identity of a provider: it gets back the state that is its own, and never that of another."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from responses_app.protocol.items import Item

if TYPE_CHECKING:  # its SDK takes most of a second to import, and other providers do not need it
    from gateway_app.providers.openai.client import Upstream


MAX_OPAQUE_DEPTH = 100  # the log stores what is nested up to 254 deep, with what is around it


def opaque(value: Any) -> Any:
    """A part of an event that is stored as it is; raises ValueError if it can't be stored."""
    level = [value]
    for _ in range(MAX_OPAQUE_DEPTH):
        inner: list[Any] = []
        for entry in level:
            if isinstance(entry, dict):
                inner += entry.values()
            elif isinstance(entry, list):
                inner += entry
        if not inner:
            return value
        level = inner
    raise ValueError("nested too deep")


def identity_of(upstream: "Upstream") -> str:
    """Another server, protocol or model is another provider.

    Signatures and encrypted reasoning belong to the model that made them, and reasoning is the
    train of thought of that model. An answer that runs on by itself is picked up where it runs.
    """
    address = urlsplit(upstream.base_url or upstream.preset.base_url)
    host = address.netloc.rpartition("@")[2]  # without credentials: the identity is stored
    return f"{upstream.name} {upstream.api_mode} {host} {upstream.model}"


def usable_state(item: Item, identity: str) -> dict[str, Any] | None:
    """The state of an item; None if the item comes from another provider.

    An item without a state is one that a client brought, or of an older version: it has no known
    origin, and its own fields count.
    """
    found = item.get("provider_state")
    if found is None:
        return {}
    if found["provider"] != identity:
        return None
    return found["state"]
