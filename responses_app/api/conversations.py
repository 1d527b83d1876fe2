"""``/v1/conversations``: items that are kept in order, whoever brings them."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from responses_app.api.authentication import owner_of
from responses_app.api.pagination import cut, envelope, read_page
from responses_app.api.parsers import read_body
from responses_app.api.payloads import shown_item
from responses_app.eventlog import event_store
from responses_app.models import Conversation, ConversationItem
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests.fields import metadata, text, wrong_type
from responses_app.requests.headers import IGNORED_HEADER, ignored_value
from responses_app.requests.items import read_input
from responses_app.services.conversations import (
    add_items,
    check_name,
    create_conversation,
    delete_conversation,
    delete_item,
    find_conversation,
    readable_items,
    resolved,
    update_metadata,
)
from responses_app.services.history.item_references import ItemNotFound

MAX_NEW_ITEMS = 20


class ConversationsView(APIView):
    def post(self, request: Request) -> JsonAnswer:
        body = read_body(request, is_required=False)
        owner_id = owner_of(request)
        name = _read_name(body.get("name"))
        pairs = _read_metadata(body)
        items = _read_items(body["items"], owner_id) if body.get("items") not in (None, []) else []
        made = database.submit(
            lambda: create_conversation(owner_id, name=name, metadata=pairs, items=items)
        )
        return JsonAnswer(
            _shown(made.result()), headers=_ignored(body, "items", "metadata", "name")
        )


class ConversationView(APIView):
    def get(self, request: Request, conversation_id: str) -> JsonAnswer:
        return JsonAnswer(_shown(_find(request, conversation_id)))

    def post(self, request: Request, conversation_id: str) -> JsonAnswer:
        conversation = _find(request, conversation_id)
        body = read_body(request)
        _require(body, "metadata")
        conversation.metadata = _read_metadata(body)
        database.submit(lambda: update_metadata(conversation.pk, conversation.metadata)).result()
        return JsonAnswer(_shown(conversation), headers=_ignored(body, "metadata"))

    def delete(self, request: Request, conversation_id: str) -> JsonAnswer:
        found = _find(request, conversation_id).pk
        database.submit(lambda: delete_conversation(found)).result()
        return JsonAnswer({"id": found, "object": "conversation.deleted", "deleted": True})


class ConversationItemsView(APIView):
    def get(self, request: Request, conversation_id: str) -> JsonAnswer:
        conversation = _find(request, conversation_id)
        rows, has_more = cut(
            readable_items(conversation.pk),
            read_page(request.query_params),
            ("position", "pk"),
            lambda item_id: ConversationItem.objects.filter(
                conversation=conversation, item_id=item_id
            ),
        )
        return JsonAnswer(
            envelope([shown_item(item) for item in resolved(rows)], has_more=has_more)
        )

    def post(self, request: Request, conversation_id: str) -> JsonAnswer:
        conversation = _find(request, conversation_id)
        body = read_body(request)
        _require(body, "items")
        items = _read_items(body["items"], conversation.owner_id)
        added = database.submit(lambda: add_items(conversation.pk, items)).result()
        data = [shown_item(item) for item in added]
        return JsonAnswer(
            envelope(data, has_more=False), headers=_ignored(body, "items", "include")
        )


class ConversationItemView(APIView):
    def get(self, request: Request, conversation_id: str, item_id: str) -> JsonAnswer:
        conversation = _find(request, conversation_id)
        return JsonAnswer(shown_item(_find_item(conversation, item_id)))

    def delete(self, request: Request, conversation_id: str, item_id: str) -> JsonAnswer:
        conversation = _find(request, conversation_id)
        _find_item(conversation, item_id)
        database.submit(lambda: delete_item(conversation.pk, item_id)).result()
        return JsonAnswer(_shown(conversation))


def _find(request: Request, reference: str) -> Conversation:
    return find_conversation(owner_of(request), reference, param="conversation_id")


def _find_item(conversation: Conversation, item_id: str) -> Item:
    rows = readable_items(conversation.pk).filter(item_id=item_id) if item_id.isprintable() else []
    for item in resolved(list(rows)):
        return item
    raise ItemNotFound(item_id, "item_id")


def _shown(conversation: Conversation) -> dict[str, Any]:
    shown = {
        "id": conversation.pk,
        "object": "conversation",
        "created_at": int(conversation.created_at.timestamp()),
        "metadata": conversation.metadata,
    }
    return shown if conversation.name is None else {**shown, "name": conversation.name}


# -- what is asked ----------------------------------------------------------------------
def _require(body: dict[str, Any], name: str) -> None:
    if name not in body:
        raise InvalidRequest(f"{name} is required.", param=name, code="missing_required_parameter")


def _read_metadata(body: dict[str, Any]) -> dict[str, str]:
    value = body.get("metadata")
    return {} if value is None else metadata(value, "metadata")


def _read_name(value: Any) -> str | None:
    if value is None:
        return None
    name = text(value, "name")
    check_name(name, "name")
    return name


def _read_items(value: Any, owner_id: int) -> list[Item]:
    if not isinstance(value, list):
        raise wrong_type("items", "an array of items")
    if len(value) > MAX_NEW_ITEMS:
        raise InvalidRequest(
            f"items may hold at most {MAX_NEW_ITEMS} items.", param="items", code="out_of_range"
        )
    items = read_input(value, owner_id, "items")
    for index, item in enumerate(items):
        if item["type"] == "item_reference":
            raise InvalidRequest(
                f"items[{index}] is a reference; a conversation takes whole items.",
                param=f"items[{index}].type",
                code="unsupported_item_type",
            )
    return items


def _ignored(body: dict[str, Any], *known: str) -> dict[str, str]:
    unknown = sorted(
        name for name, value in body.items() if value is not None and name not in known
    )
    return {IGNORED_HEADER: ignored_value(unknown)} if unknown else {}
