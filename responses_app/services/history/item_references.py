"""``item_reference``: items of earlier responses, by their id."""

from responses_app.models import ConversationItem, InputItem, Response
from responses_app.protocol.errors import NotFound
from responses_app.protocol.ids import location_of_item
from responses_app.protocol.items import Item, without_fields


class ItemNotFound(NotFound):
    code = "item_not_found"

    def __init__(self, item_id: str, param: str) -> None:
        super().__init__(f"Item not found: {item_id}", param=param)


def resolve_references(owner_id: int, items: list[Item]) -> list[Item]:
    """The items with each reference replaced by what it names."""
    return [
        _resolved(owner_id, item["id"], f"input[{index}].id")
        if item["type"] == "item_reference"
        else item
        for index, item in enumerate(items)
    ]


def _resolved(owner_id: int, item_id: str, param: str) -> Item:
    place = location_of_item(item_id)
    if place is None:
        found = _of_conversation(owner_id, item_id)
    elif place.is_input:
        found = _input(owner_id, place.response_id, place.index)
    else:
        found = _output(owner_id, place.response_id, place.index)
    if found is None or found.get("id", item_id) != item_id:
        raise ItemNotFound(item_id, param)
    return without_fields(found, "id")


def _input(owner_id: int, response_id: str, index: int) -> Item | None:
    visible = Response.objects.visible_to(owner_id).filter(pk=response_id, deleted_at__isnull=True)
    rows = InputItem.objects.filter(response__in=visible, position=index)
    return rows.values_list("item", flat=True).first()


def _output(owner_id: int, response_id: str, index: int) -> Item | None:
    visible = Response.objects.visible_to(owner_id).filter(pk=response_id, deleted_at__isnull=True)
    output = visible.values_list("output", flat=True).first()
    return output[index] if output and index < len(output) else None


def _of_conversation(owner_id: int, item_id: str) -> Item | None:
    rows = ConversationItem.objects.filter(
        item_id=item_id, conversation__owner_id=owner_id, item__isnull=False
    )
    return rows.values_list("item", flat=True).first()
