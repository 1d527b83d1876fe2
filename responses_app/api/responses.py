"""``/v1/responses``: the endpoints that answer with plain JSON."""

import time

import orjson
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView
from responses_app.api.pagination import IdPagination
from responses_app.api.payloads import (
    body_without_content,
    item_payload,
    response_payload,
    response_payloads,
)
from responses_app.api.query_params import read_choice, read_text
from responses_app.api.renderers import JSONRenderer
from responses_app.models import Response as StoredResponse
from responses_app.models import Session
from responses_app.postgresql.threads import release_connection
from responses_app.protocol.status import Status
from responses_app.requests.headers import (
    LAST_EVENT_HEADER,
    SESSION_HEADER,
    read_cursor,
    read_flag,
    read_last_event_id,
    usage_headers,
)
from responses_app.services.history.chain import sent_items
from responses_app.services.lifecycle.cancel import request_cancel
from responses_app.services.lifecycle.delete import delete_response
from responses_app.services.lookup import find_response, note_access

CANCEL_WAIT_SECS = 5  # how long a cancel call waits to return the settled response
CANCEL_POLL_SECS = 0.02


class ResponsesView(ApiView):
    """POST is served by a streaming consumer."""

    def get(self, request: ApiRequest) -> Response:
        owned = StoredResponse.objects.visible_to(request.user.pk)
        listed = owned.filter(deleted_at__isnull=True).only("pk", "status")
        wanted = _filtered(listed, request.user.pk, request.query_params)
        paginator = IdPagination()
        rows = paginator.paginate_queryset(wanted, request, cursors=owned)
        return paginator.get_paginated_response(response_payloads(rows))


class ResponseView(ApiView):
    def get(self, request: ApiRequest, response_id: str) -> HttpResponse:
        # A consumer serves streams; a wrong value of their parameters is an error here as well.
        read_flag(request.query_params.get("stream"), "stream")
        read_cursor(request.query_params.get("starting_after"), "starting_after")
        read_last_event_id(request.headers.get(LAST_EVENT_HEADER))
        row = find_response(request.user.pk, response_id)
        note_access(row)
        return _current(row)

    def delete(self, request: ApiRequest, response_id: str) -> Response:
        row = find_response(request.user.pk, response_id)
        delete_response(row.pk)
        return Response({"id": row.pk, "object": "response", "deleted": True})


class InputItemsView(ApiView):
    def get(self, request: ApiRequest, response_id: str) -> Response:
        row = find_response(request.user.pk, response_id)
        note_access(row)
        paginator = IdPagination()
        items = paginator.paginate_queryset(sent_items(row), request)
        return paginator.get_paginated_response([item_payload(item) for item in items])


class CancelView(ApiView):
    def post(self, request: ApiRequest, response_id: str) -> HttpResponse:
        row = find_response(request.user.pk, response_id, must_be_stored=False)
        if row.is_open:
            release_connection()
            request_cancel(row.pk, request.auth.actor).result()
            _wait_until_settled(row.pk)
            row.refresh_from_db(fields=["is_usage_estimated"])
        if not row.is_stored:
            return Response(body_without_content(row.pk))
        return _current(row)


class StreamedView(ApiView):
    """For a path that consumers serve alone: the streaming router finds its methods."""


def _current(row: StoredResponse) -> HttpResponse:
    headers = {SESSION_HEADER: row.session.public_id}
    headers |= usage_headers(is_estimated=row.is_usage_estimated)
    # A response of REST framework is in a cycle with its view: a long body would stay with it.
    content = orjson.dumps(response_payload(row))
    return HttpResponse(content, content_type=JSONRenderer.media_type, headers=headers)


def _wait_until_settled(response_id: str) -> None:
    running = StoredResponse.objects.open().filter(pk=response_id)
    deadline = time.monotonic() + CANCEL_WAIT_SECS
    while time.monotonic() < deadline and running.exists():
        release_connection()
        time.sleep(CANCEL_POLL_SECS)


def _filtered(
    rows: QuerySet[StoredResponse], owner_id: int, params: QueryDict
) -> QuerySet[StoredResponse]:
    status = read_choice(params, "status", Status)
    session = read_text(params, "session")
    model = read_text(params, "model")
    if status is not None:
        rows = rows.filter(status=status)
    if session is not None:
        rows = rows.filter(session__in=Session.objects.filter(owner_id=owner_id, public_id=session))
    if model is not None:
        rows = rows.filter(model=model)
    return rows
