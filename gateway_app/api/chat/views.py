"""Chat completions that the client asked to keep (``store: true``): read, changed, deleted."""

from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast
from django.db.models.lookups import Exact
from django.http import QueryDict
from rest_framework.response import Response

from gateway_app.api.chat.payloads import CompletionNotFound, completion, response_id_of
from gateway_app.api.chat.stored_messages import stored_messages
from responses_app.api.base import ApiRequest, ApiView
from responses_app.api.pagination import IdPagination
from responses_app.api.payloads import response_bodies
from responses_app.api.query_params import read_map, read_text
from responses_app.eventlog import current_body
from responses_app.models import Kind
from responses_app.models import Response as StoredResponse
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import OnDisconnect
from responses_app.requests.conversations import UPDATE_FIELDS, read_metadata
from responses_app.requests.headers import SESSION_HEADER, ignored_headers, usage_headers
from responses_app.services.history.chain import sent_items
from responses_app.services.lifecycle.delete import delete_response
from responses_app.services.lifecycle.metadata import replace_metadata
from responses_app.services.lookup import note_access


class CompletionPagination(IdPagination):
    default_order = "asc"

    def stored_id(self, entry_id: str) -> str:
        return response_id_of(entry_id) or ""


class CompletionsView(ApiView):
    """POST is served by a streaming consumer."""

    def get(self, request: ApiRequest) -> Response:
        kept = _kept(request.user.pk)
        listed = kept.filter(deleted_at__isnull=True).only("pk", "status")
        paginator = CompletionPagination()
        rows = paginator.paginate_queryset(
            _filtered(listed, request.query_params), request, cursors=kept
        )
        metadata = {row.pk: row.metadata for row in rows}
        completions: list[dict[str, Any]] = []
        for body in response_bodies(rows):
            completions.append(_stored_completion(body, metadata[body["id"]]))
        return paginator.get_paginated_response(completions)


class CompletionView(ApiView):
    def get(self, request: ApiRequest, completion_id: str) -> Response:
        row = _find(request.user.pk, completion_id)
        note_access(row)
        headers = {SESSION_HEADER: row.session.public_id}
        headers |= usage_headers(is_estimated=row.is_usage_estimated)
        return Response(_payload(row, completion_id), headers=headers)

    def post(self, request: ApiRequest, completion_id: str) -> Response:
        """The metadata is all that can be changed."""
        row = _find(request.user.pk, completion_id)
        body = request.data
        replace_metadata(row.pk, read_metadata(body))
        changed = _find(request.user.pk, completion_id)
        headers = {SESSION_HEADER: changed.session.public_id}
        headers |= usage_headers(is_estimated=changed.is_usage_estimated)
        headers |= ignored_headers(body, UPDATE_FIELDS)
        return Response(_payload(changed, completion_id), headers=headers)

    def delete(self, request: ApiRequest, completion_id: str) -> Response:
        delete_response(_find(request.user.pk, completion_id).pk)
        return Response({"id": completion_id, "object": "chat.completion.deleted", "deleted": True})


class MessagePagination(IdPagination):
    default_order = "asc"


class CompletionMessagesView(ApiView):
    def get(self, request: ApiRequest, completion_id: str) -> Response:
        row = _find(request.user.pk, completion_id)
        note_access(row)
        paginator = MessagePagination()
        messages = stored_messages(completion_id, sent_items(row))
        return paginator.get_paginated_response(paginator.paginate_queryset(messages, request))


def _kept(owner_id: int) -> QuerySet[StoredResponse]:
    """A completion without ``store`` ends with its client; only its session records it."""
    visible = StoredResponse.objects.visible_to(owner_id)
    kept = visible.filter(kind=Kind.CHAT, on_disconnect=OnDisconnect.CONTINUE)
    return kept.annotate(metadata=KeyTransform("metadata", "request"))


def _find(owner_id: int, completion_id: str) -> StoredResponse:
    response_id = response_id_of(completion_id)
    if response_id is None or not response_id.isprintable():
        raise CompletionNotFound(completion_id)
    kept = _kept(owner_id).filter(deleted_at__isnull=True).select_related("session")
    row = kept.filter(pk=response_id).first()
    if row is None:
        raise CompletionNotFound(completion_id)
    return row


def _payload(row: StoredResponse, completion_id: str) -> dict[str, Any]:
    body = current_body(row.pk)
    if body is None:  # deleted meanwhile
        raise CompletionNotFound(completion_id)
    return _stored_completion(body, row.metadata)  # type: ignore[attr-defined]


def _stored_completion(body: ResponseBody, metadata: dict[str, str] | None) -> dict[str, Any]:
    """With the metadata of the row: that of the body is as the request had it."""
    return completion(body) | {"metadata": metadata or {}}


def _filtered(rows: QuerySet[StoredResponse], params: QueryDict) -> QuerySet[StoredResponse]:
    model = read_text(params, "model")
    if model is not None:
        rows = rows.filter(model=model)
    for key, value in read_map(params, "metadata").items():
        # Django compares a value of a JSON column only with JSON, hence the cast.
        text = Cast(KeyTextTransform(key, KeyTransform("metadata", "request")), TextField())
        rows = rows.filter(Exact(text, value))
    return rows
