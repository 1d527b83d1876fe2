"""``input``: a text of the user, or items; ``conversation_history``: the items before it."""

from typing import Any

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import COMPACTION, Item
from responses_app.requests.fields import Field, an_object, wrong_type
from responses_app.requests.items import KEPT_TYPES, message, read_item
from responses_app.requests.json_schema import STRING, any_of, array_of, ref
from responses_app.requests.messages import ENTRY, ITEM, as_items, with_images
from responses_app.requests.structures import read_array
from responses_app.sealing import NotSealedHere
from responses_app.services.history.compaction import is_foreign, open_compaction
from responses_app.services.profiles import is_any_upstream_of_responses

MAX_ITEMS = 10_000
HISTORY = "conversation_history"


def _read_items(value: Any, name: str) -> list[Item]:
    if isinstance(value, str):
        return [message("user", [{"type": "input_text", "text": value}])]
    if not isinstance(value, list):
        raise wrong_type(name, "a string or an array of items")
    if not value:
        raise InvalidRequest(f"{name} must not be empty.", param=name)
    if len(value) > MAX_ITEMS:
        raise InvalidRequest(f"{name} may hold at most {MAX_ITEMS} items.", param=name)
    return [read_item(item, f"{name}[{index}]") for index, item in enumerate(value)]


def _read_input(value: Any, name: str) -> list[Item]:
    return _read_items(as_items(value), name)


def _read_history(value: Any, name: str) -> list[Item]:
    """As in Hermes, each message is an object with its role; only the input may be bare texts."""
    messages: list[dict[str, Any]] = []
    for index, entry in enumerate(read_array(value, name, "an array of messages")):
        messages.append(with_images(an_object(entry, f"{name}[{index}]")))
    if not messages:
        return []
    return _read_items(messages, name)


input_items = Field(
    _read_items,
    any_of(STRING, array_of(ref("InputItem"), minItems=1, maxItems=MAX_ITEMS)),
)
INPUT_SCHEMA = any_of(STRING, array_of(ENTRY, minItems=1, maxItems=MAX_ITEMS))
request_input = Field(_read_input, INPUT_SCHEMA).described(
    "A text, items, or texts and messages without a role."
)
conversation_history = Field(_read_history, array_of(ITEM, maxItems=MAX_ITEMS)).described(
    "Messages before the input, instead of every other history."
)


def read_input(value: Any, owner_id: int, name: str = "input") -> list[Item]:
    items = request_input(value, name)
    check_compactions(items, owner_id, name)
    return items


def check_compactions(items: list[Item], owner_id: int, name: str) -> None:
    """Compactions are encrypted for one owner: no other may send them."""
    for index, item in enumerate(items):
        if item["type"] == COMPACTION:
            _check_compaction(item, owner_id, f"{name}[{index}].encrypted_content")


def is_kept(item: Item) -> bool:
    """Whether only an upstream can use the item."""
    return item["type"] in KEPT_TYPES or is_foreign(item)


def _check_compaction(item: Item, owner_id: int, name: str) -> None:
    if is_foreign(item) and is_any_upstream_of_responses():
        return  # it may be the upstream's own
    try:
        open_compaction(owner_id, item["encrypted_content"])
    except NotSealedHere:
        raise InvalidRequest(
            f"{name} is not as this server made it for you: "
            "it was altered or cut, or belongs to another owner.",
            param=name,
            code="invalid_encrypted_content",
        ) from None
