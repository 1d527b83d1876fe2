"""Outputs of tools as the model sees them."""

from collections.abc import Iterable, Mapping

from gateway_app.agent.context import with_images
from responses_app.models import ToolEvent
from responses_app.protocol.items import OUTPUTS, Item, item_text

# What the model and the client see of an output; the ledger keeps all of it.
MAX_VISIBLE_CHARS = 50_000


def visible_output(output: str) -> str:
    """An output as the model and the client see it."""
    if len(output) <= MAX_VISIBLE_CHARS:
        return output
    half = MAX_VISIBLE_CHARS // 2
    count = len(output) - 2 * half
    cut = f"\n[... {count} characters are left out here; the server's ledger has them ...]\n"
    return output[:half] + cut + output[-half:]


def with_stored_images(items: Iterable[Item], ledger: Mapping[str, ToolEvent]) -> list[Item]:
    """The items of earlier attempts with the images of their tools' outputs, which no log has."""
    found: list[Item] = []
    for item in items:
        known = ledger.get(item.get("call_id", ""))
        if item["type"] in OUTPUTS and known is not None and known.images:
            item = item.copy()
            item["output"] = with_images(item_text(item), known.image_urls)
        found.append(item)
    return found
