"""``/v1/conversations``: items that are kept in order, of clients and of responses."""

from functools import partial
from typing import Any

from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView
from responses_app.api.pagination import IdPagination, list_envelope
from responses_app.api.payloads import item_payload
from responses_app.database import database
from responses_app.models import Conversation, ConversationItem
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests.fields import metadata, text, wrong_type
from responses_app.requests.headers import ignored_headers
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


class ConversationsView(ApiView):
    is_body_required = False

    def post(self, request: ApiRequest) -> Response:
        body = request.data
        owner_id = request.user.pk
        name = _read_name(body.get("name"))
        pairs = _read_metadata(body)
        items: list[Item] = []
        if body.get("items") not in (None, []):
            items = _read_items(body["items"], owner_id)
        create = partial(create_conversation, owner_id, name=name, metadata=pairs, items=items)
        made = database.submit(create).result()
        headers = ignored_headers(body, ("items", "metadata", "name"))
        return Response(_conversation_payload(made), headers=headers)


class ConversationView(ApiView):
    def get(self, request: ApiRequest, conversation_id: str) -> Response:
        return Response(_conversation_payload(_find(request, conversation_id)))

    def post(self, request: ApiRequest, conversation_id: str) -> Response:
        conversation = _find(request, conversation_id)
        body = request.data
        _require(body, "metadata")
        conversation.metadata = _read_metadata(body)
        update = partial(update_metadata, conversation.pk, conversation.metadata)
        database.submit(update).result()
        headers = ignored_headers(body, ("metadata",))
        return Response(_conversation_payload(conversation), headers=headers)

    def delete(self, request: ApiRequest, conversation_id: str) -> Response:
        found_id = _find(request, conversation_id).pk
        database.submit(partial(delete_conversation, found_id)).result()
        return Response({"id": found_id, "object": "conversation.deleted", "deleted": True})


class ConversationItemPagination(IdPagination):
    sort_key = ("position", "pk")
    id_field = "item_id"


class ConversationItemsView(ApiView):
    def get(self, request: ApiRequest, conversation_id: str) -> Response:
        conversation = _find(request, conversation_id)
        paginator = ConversationItemPagination()
        every = ConversationItem.objects.filter(conversation=conversation)
        readable = readable_items(conversation.pk)
        rows = paginator.paginate_queryset(readable, request, cursors=every)
        return paginator.get_paginated_response([item_payload(item) for item in resolved(rows)])

    def post(self, request: ApiRequest, conversation_id: str) -> Response:
        conversation = _find(request, conversation_id)
        body = request.data
        _require(body, "items")
        items = _read_items(body["items"], conversation.owner_id)
        added = database.submit(partial(add_items, conversation.pk, items)).result()
        data = [item_payload(item) for item in added]
        headers = ignored_headers(body, ("items", "include"))
        return Response(list_envelope(data, has_more=False), headers=headers)


class ConversationItemView(ApiView):
    def get(self, request: ApiRequest, conversation_id: str, item_id: str) -> Response:
        conversation = _find(request, conversation_id)
        return Response(item_payload(_find_item(conversation, item_id)))

    def delete(self, request: ApiRequest, conversation_id: str, item_id: str) -> Response:
        conversation = _find(request, conversation_id)
        _find_item(conversation, item_id)
        database.submit(partial(delete_item, conversation.pk, item_id)).result()
        return Response(_conversation_payload(conversation))


def _find(request: ApiRequest, reference: str) -> Conversation:
    return find_conversation(request.user.pk, reference, param="conversation_id")


def _find_item(conversation: Conversation, item_id: str) -> Item:
    if item_id.isprintable():
        rows = readable_items(conversation.pk).filter(item_id=item_id)
        for item in resolved(list(rows)):
            return item
    raise ItemNotFound(item_id, "item_id")


def _conversation_payload(conversation: Conversation) -> dict[str, Any]:
    payload = {
        "id": conversation.pk,
        "object": "conversation",
        "created_at": int(conversation.created_at.timestamp()),
        "metadata": conversation.metadata,
    }
    if conversation.name is not None:
        payload["name"] = conversation.name
    return payload


# -- reading the body --------------------------------------------------------------------
def _require(body: dict[str, Any], name: str) -> None:
    if name not in body:
        raise InvalidRequest(f"{name} is required.", param=name, code="missing_required_parameter")


def _read_metadata(body: dict[str, Any]) -> dict[str, str]:
    value = body.get("metadata")
    if value is None:
        return {}
    return metadata(value, "metadata")


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
