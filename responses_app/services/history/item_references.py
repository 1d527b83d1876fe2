"""``item_reference``: items of earlier responses, by their id."""

from collections.abc import Callable

from responses_app.models import ConversationItem, InputItem, Response, ResponseQuerySet
from responses_app.protocol.errors import NotFound
from responses_app.protocol.ids import ItemLocation, location_of_item
from responses_app.protocol.items import (
    APPROVAL_REQUEST,
    Item,
    request_id_of,
    without_fields,
)


class ItemNotFound(NotFound):
    code = "item_not_found"

    def __init__(self, item_id: str, param: str) -> None:
        super().__init__(f"Item not found: {item_id}", param=param)


def resolve_references(
    owner_id: int, items: list[Item], location: Callable[[int], str] = "input[{}]".format
) -> list[Item]:
    """The items, with the named item instead of each reference."""
    resolved: list[Item] = []
    found: dict[str, Item] = {}
    for index, item in enumerate(items):
        if item["type"] != "item_reference":
            resolved.append(item)
            continue
        item_id = item["id"]
        if item_id not in found:
            found[item_id] = _find_item(owner_id, item_id, f"{location(index)}.id")
        resolved.append(found[item_id])
    return resolved


def _find_item(owner_id: int, item_id: str, param: str) -> Item:
    location = location_of_item(item_id)
    if location is None:
        found = _in_conversations(owner_id, item_id)
    else:
        found = find_in_response(owner_id, location)
    if found is None or found.get("id", item_id) != item_id:
        raise ItemNotFound(item_id, param)
    named = without_fields(found, "id")
    if found["type"] == APPROVAL_REQUEST:
        named["approval_request_id"] = request_id_of(found)
    return named


def find_in_response(owner_id: int, location: ItemLocation) -> Item | None:
    visible: ResponseQuerySet = Response.objects.visible_to(owner_id).filter(
        pk=location.response_id, deleted_at__isnull=True
    )
    if location.is_input:
        rows = InputItem.objects.filter(response__in=visible, position=location.index)
        return rows.values_list("item", flat=True).first()
    output = visible.values_list("output", flat=True).first()
    if not output or location.index >= len(output):
        return None
    item: Item = output[location.index]
    return item


def _in_conversations(owner_id: int, item_id: str) -> Item | None:
    rows = ConversationItem.objects.filter(
        item_id=item_id, conversation__owner_id=owner_id, item__isnull=False
    )
    return rows.values_list("item", flat=True).first()
