"""``/v1/conversations``: items that are kept in order, of clients and of responses."""

from functools import partial
from typing import Any

from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView
from responses_app.api.pagination import IdPagination, list_envelope
from responses_app.api.payloads import item_payload
from responses_app.database import database
from responses_app.models import Conversation, ConversationItem
from responses_app.protocol.items import Item
from responses_app.requests.conversations import (
    CREATE_FIELDS,
    UPDATE_FIELDS,
    read_added_items,
    read_metadata,
    read_new_conversation,
)
from responses_app.requests.headers import ignored_headers
from responses_app.services.conversations import (
    add_items,
    create_conversation,
    delete_conversation,
    delete_item,
    find_conversation,
    readable_items,
    resolved,
    update_metadata,
)
from responses_app.services.history.item_references import ItemNotFound


class ConversationsView(ApiView):
    is_body_required = False

    def post(self, request: ApiRequest) -> Response:
        body = request.data
        owner_id = request.user.pk
        fields = read_new_conversation(body, owner_id)
        create = partial(create_conversation, owner_id, **fields)
        made = database.submit(create).result()
        headers = ignored_headers(body, CREATE_FIELDS)
        return Response(_conversation_payload(made), headers=headers)


class ConversationView(ApiView):
    def get(self, request: ApiRequest, conversation_id: str) -> Response:
        return Response(_conversation_payload(_find(request, conversation_id)))

    def post(self, request: ApiRequest, conversation_id: str) -> Response:
        conversation = _find(request, conversation_id)
        body = request.data
        conversation.metadata = read_metadata(body)
        update = partial(update_metadata, conversation.pk, conversation.metadata)
        database.submit(update).result()
        headers = ignored_headers(body, UPDATE_FIELDS)
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
        items = read_added_items(body, conversation.owner_id)
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
