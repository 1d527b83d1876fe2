"""Chat completions that were asked to be kept (``store: true``): read again, listed, deleted."""

from django.db.models import QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast
from django.db.models.lookups import Exact
from django.http import QueryDict
from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from gateway_app.api.chat.payloads import CompletionNotFound, completion, response_id_of
from responses_app.api.authentication import owner_of
from responses_app.api.pagination import (
    cut,
    envelope,
    read_page,
    read_word,
)
from responses_app.api.payloads import bodies_of
from responses_app.eventlog import current_body
from responses_app.http.session_key import has_controls
from responses_app.models import Response
from responses_app.models.responses import Kind
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import OnDisconnect
from responses_app.requests.headers import SESSION_HEADER
from responses_app.services.lifecycle.delete import delete_response
from responses_app.services.lookup import note_access


class CompletionsView(APIView):
    """POST is served by a streaming consumer."""

    def get(self, request: Request) -> JsonAnswer:
        kept = _kept(owner_of(request))
        rows, has_more = cut(
            _filtered(kept.filter(deleted_at__isnull=True), request.query_params).only(
                "pk", "status"
            ),
            read_page(request.query_params, default_order="asc"),
            ("created_at", "pk"),
            lambda completion: kept.filter(pk=response_id_of(completion) or ""),
        )
        return JsonAnswer(envelope([_stored(body) for body in bodies_of(rows)], has_more=has_more))


class CompletionView(APIView):
    def get(self, request: Request, completion_id: str) -> JsonAnswer:
        row = _find(owner_of(request), completion_id)
        note_access(row)
        body = current_body(row.pk)
        if body is None:
            raise CompletionNotFound(completion_id)
        return JsonAnswer(_stored(body), headers={SESSION_HEADER: row.session.public_id})

    def delete(self, request: Request, completion_id: str) -> JsonAnswer:
        delete_response(_find(owner_of(request), completion_id).pk)
        return JsonAnswer(
            {"id": completion_id, "object": "chat.completion.deleted", "deleted": True}
        )


def _kept(owner_id: int) -> QuerySet[Response]:
    """A completion without ``store`` ends with its client: it is recorded in its session, and not kept here."""
    return Response.objects.visible_to(owner_id).filter(
        kind=Kind.CHAT, on_disconnect=OnDisconnect.CONTINUE
    )


def _find(owner_id: int, completion: str) -> Response:
    kept = _kept(owner_id).filter(deleted_at__isnull=True).select_related("session")
    row = (
        kept.filter(pk=response_id_of(completion) or "").first()
        if completion.isprintable()
        else None
    )
    if row is None:
        raise CompletionNotFound(completion)
    return row


def _stored(body: ResponseBody) -> dict[str, object]:
    return {**completion(body), "metadata": body["metadata"]}


def _filtered(rows: QuerySet[Response], params: QueryDict) -> QuerySet[Response]:
    model = read_word(params, "model")
    if model is not None:
        rows = rows.filter(model=model)
    for name in params:
        if name.startswith("metadata[") and name.endswith("]"):
            key, value = (
                name.removeprefix("metadata[").removesuffix("]"),
                read_word(params, name) or "",
            )
            if has_controls(key):
                raise InvalidRequest(
                    "A key of metadata contains control characters.",
                    param="metadata",
                    code="invalid_text",
                )
            # A cast, for Django compares what comes out of JSON only with JSON.
            text = Cast(KeyTextTransform(key, KeyTransform("metadata", "request")), TextField())
            rows = rows.filter(Exact(text, value))
    return rows
