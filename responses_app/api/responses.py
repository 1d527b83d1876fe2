"""``/v1/responses``: the endpoints that answer with plain JSON."""

import time

from django.db.models import QuerySet
from django.http import QueryDict
from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from responses_app.api.authentication import owner_of, principal_of
from responses_app.api.pagination import (
    cut,
    cut_items,
    envelope,
    read_choice,
    read_page,
    read_word,
)
from responses_app.api.payloads import bodies_of, shown_item
from responses_app.eventlog import current_body
from responses_app.models import Response, Session
from responses_app.postgresql.threads import release_connection
from responses_app.protocol.errors import ResponseNotFound
from responses_app.protocol.response_object import initial_body
from responses_app.protocol.snapshot import ResponseBody, json_body
from responses_app.protocol.status import Status
from responses_app.requests.headers import (
    LAST_EVENT_HEADER,
    SESSION_HEADER,
    read_cursor,
    read_flag,
    read_last_event_id,
)
from responses_app.services.history.chain import sent_items
from responses_app.services.lifecycle.cancel import request_cancel
from responses_app.services.lifecycle.delete import delete_response
from responses_app.services.lookup import find_response, note_access

CANCEL_WAIT_SECS = 5  # how long a cancel call waits to show the settled response
CANCEL_POLL_SECS = 0.02


class ResponsesView(APIView):
    """POST is served by a streaming consumer."""

    def get(self, request: Request) -> JsonAnswer:
        owned = Response.objects.visible_to(owner_of(request))
        wanted = _filtered(
            owned.filter(deleted_at__isnull=True), owner_of(request), request.query_params
        )
        # A deleted response still marks its place: a client may delete while it walks the list.
        rows, has_more = cut(
            wanted.only("pk", "status"),
            read_page(request.query_params),
            ("created_at", "pk"),
            lambda response_id: owned.filter(pk=response_id),
        )
        return JsonAnswer(
            envelope([json_body(body) for body in bodies_of(rows)], has_more=has_more)
        )


class InputItemsView(APIView):
    def get(self, request: Request, response_id: str) -> JsonAnswer:
        row = find_response(owner_of(request), response_id)
        note_access(row)
        found, has_more = cut_items(sent_items(row), read_page(request.query_params))
        return JsonAnswer(envelope([shown_item(item) for item in found], has_more=has_more))


class ResponseView(APIView):
    def get(self, request: Request, response_id: str) -> JsonAnswer:
        # A stream is served elsewhere; a wrong value of what it reads is wrong here, too.
        read_flag(request.query_params.get("stream"), "stream")
        read_cursor(request.query_params.get("starting_after"), "starting_after")
        read_last_event_id(request.headers.get(LAST_EVENT_HEADER))
        row = find_response(owner_of(request), response_id)
        note_access(row)
        return _answer(row)

    def delete(self, request: Request, response_id: str) -> JsonAnswer:
        row = find_response(owner_of(request), response_id)
        delete_response(row.pk)
        return JsonAnswer({"id": row.pk, "object": "response", "deleted": True})


class CancelView(APIView):
    def post(self, request: Request, response_id: str) -> JsonAnswer:
        row = find_response(owner_of(request), response_id, must_be_stored=False)
        if row.is_open:
            release_connection()
            request_cancel(row.pk, principal_of(request).actor).result()
            _wait_until_settled(row.pk)
        if not row.is_stored:
            return JsonAnswer(_bare_body(row.pk))
        return _answer(row)


class StreamedView(APIView):
    """For a path that consumers serve alone: the router finds no method here, and knows theirs."""


def _answer(row: Response) -> JsonAnswer:
    body: ResponseBody | None = current_body(row.pk)
    if body is None:
        raise ResponseNotFound(row.pk)
    return JsonAnswer(json_body(body), headers={SESSION_HEADER: row.session.public_id})


def _bare_body(response_id: str) -> ResponseBody:
    """Of a response that is not stored: every key, and no content."""
    row = Response.objects.get(pk=response_id)
    created_at = int(row.created_at.timestamp())
    return initial_body(
        row.pk,
        model=row.model,
        created_at=created_at,
        status=Status(row.status),
        echo={"store": False},
    )


def _wait_until_settled(response_id: str) -> None:
    deadline = time.monotonic() + CANCEL_WAIT_SECS
    while time.monotonic() < deadline and Response.objects.open().filter(pk=response_id).exists():
        release_connection()
        time.sleep(CANCEL_POLL_SECS)


def _filtered(rows: QuerySet[Response], owner_id: int, params: QueryDict) -> QuerySet[Response]:
    status = read_choice(params, "status", Status)
    session, model = read_word(params, "session"), read_word(params, "model")
    if status is not None:
        rows = rows.filter(status=status)
    if session is not None:
        rows = rows.filter(session__in=Session.objects.filter(owner_id=owner_id, public_id=session))
    if model is not None:
        rows = rows.filter(model=model)
    return rows
