"""Images of tool outputs, which the ledger has and no log."""

from collections.abc import Iterable, Mapping

from gateway_app.agent.context import with_images
from responses_app.models import ToolEvent
from responses_app.protocol.items import OUTPUTS, Item, item_text


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
