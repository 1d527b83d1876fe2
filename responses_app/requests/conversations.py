"""The bodies of ``/v1/conversations``."""

from typing import Any

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests.fields import Field, optional, read_fields, text
from responses_app.requests.input_items import check_compactions, input_items
from responses_app.requests.json_schema import array_of, ref, short_string
from responses_app.requests.structures import metadata, read_array
from responses_app.services.conversations import ID_PREFIX, MAX_NAME_CHARS, check_name
from responses_app.services.history.item_references import resolve_references

MAX_NEW_ITEMS = 20
# Close to `check_name`: no pattern expresses which characters are printable.
_NAME = rf"^(?!{ID_PREFIX}|\.{{1,2}}$)[^\u0000-\u001f\u007f/\\]*$"


def _read_name(value: Any, name: str) -> str:
    given = text(value, name)
    check_name(given, name)
    return given


def _read_new_items(value: Any, name: str) -> list[Item]:
    entries = read_array(value, name, "an array of items")
    if len(entries) > MAX_NEW_ITEMS:
        raise InvalidRequest(
            f"{name} may hold at most {MAX_NEW_ITEMS} items.", param=name, code="out_of_range"
        )
    return input_items(entries, name)


def _read_first_items(value: Any, name: str) -> list[Item]:
    if value == []:
        return []
    return _read_new_items(value, name)


_items_schema = array_of(ref("InputItem"), maxItems=MAX_NEW_ITEMS)
CREATE_FIELDS: dict[str, Field[Any]] = {
    "items": Field(_read_first_items, _items_schema),
    "metadata": metadata,
    "name": Field(_read_name, short_string(MAX_NAME_CHARS) | {"pattern": _NAME}).described(
        "Can stand for its id. Printable, without slashes, not beginning with conv_."
    ),
}
UPDATE_FIELDS = {"metadata": optional(metadata)}
ADD_FIELDS = {"items": Field(_read_new_items, _items_schema | {"minItems": 1})}


def read_new_conversation(body: dict[str, Any], owner_id: int) -> dict[str, Any]:
    """The name, the metadata and the items of a new conversation."""
    given = read_fields(CREATE_FIELDS, body)
    items = _complete(given.get("items", []), owner_id)
    return {"name": given.get("name"), "metadata": given.get("metadata", {}), "items": items}


def read_metadata(body: dict[str, Any]) -> dict[str, str]:
    """``metadata`` is required, but may be null."""
    _require(body, "metadata")
    return UPDATE_FIELDS["metadata"](body["metadata"], "metadata") or {}


def read_added_items(body: dict[str, Any], owner_id: int) -> list[Item]:
    _require(body, "items")
    return _complete(ADD_FIELDS["items"](body["items"], "items"), owner_id)


def _complete(items: list[Item], owner_id: int) -> list[Item]:
    """A conversation holds whole items: a copy of each that a reference names."""
    check_compactions(items, owner_id, "items")
    return resolve_references(owner_id, items, "items[{}]".format)


def _require(body: dict[str, Any], name: str) -> None:
    if name not in body:
        raise InvalidRequest(f"{name} is required.", param=name, code="missing_required_parameter")
