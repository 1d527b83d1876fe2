"""``/v1/responses/{id}`` and ``/v1/models``: plain JSON."""

import time
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from responses_app.api.authentication import owner_of, principal_of
from responses_app.eventlog import current_body
from responses_app.models import Response
from responses_app.postgresql.threads import release_connection
from responses_app.protocol.errors import ModelNotFound, ResponseNotFound
from responses_app.protocol.response_object import ResponseBody, initial_body, json_body
from responses_app.protocol.status import Status
from responses_app.requests.headers import (
    LAST_EVENT_HEADER,
    SESSION_HEADER,
    read_cursor,
    read_flag,
    read_last_event_id,
)
from responses_app.requests.model_name import model_names
from responses_app.services.lifecycle.cancel import request_cancel
from responses_app.services.lifecycle.delete import delete_response
from responses_app.services.lookup import find_response, note_access

CANCEL_WAIT_SECS = 5  # how long a cancel call waits to show the settled response
CANCEL_POLL_SECS = 0.02


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


class ModelsView(APIView):
    def get(self, request: Request) -> JsonAnswer:
        names = model_names(principal_of(request))
        return JsonAnswer({"object": "list", "data": [_model(name) for name in names]})


class ModelView(APIView):
    def get(self, request: Request, model: str) -> JsonAnswer:
        if model not in model_names(principal_of(request)):
            raise ModelNotFound(model)
        return JsonAnswer(_model(model))


class HealthView(APIView):
    authentication_classes = ()
    permission_classes = ()

    def get(self, request: Request) -> JsonAnswer:
        status = "degraded" if settings.HERMES_DEGRADED else "ok"
        return JsonAnswer(
            {"status": status, "platform": "hermes-agent", "version": settings.HERMES_VERSION}
        )


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


def _model(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "hermes",
        "permission": [],
        "root": name,
        "parent": None,
    }
