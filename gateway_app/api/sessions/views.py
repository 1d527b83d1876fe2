"""``/api/sessions``: plain JSON."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from gateway_app.api.sessions.pagination import page_of_messages, page_of_sessions
from gateway_app.api.sessions.payloads import session_objects, shown_sessions
from gateway_app.api.sessions.requests import (
    CREATE_FIELDS,
    read_changes,
    read_id,
    read_new_session,
    read_title,
)
from gateway_app.api.sessions.transcript import session_messages
from responses_app.api.authentication import owner_of, principal_of
from responses_app.api.parsers import read_body
from responses_app.database import database
from responses_app.models import Session
from responses_app.protocol.errors import InvalidRequest, SessionNotFound
from responses_app.protocol.ids import response_id_of
from responses_app.requests.fields import short_text
from responses_app.requests.headers import IGNORED_HEADER, ignored_value
from responses_app.requests.items import MAX_ID_CHARS
from responses_app.requests.model_name import resolve_model
from responses_app.services.history.fork import fork_session
from responses_app.services.sessions import (
    create_session,
    delete_session,
    find_session,
    update_session,
)


class SessionsView(APIView):
    def get(self, request: Request) -> JsonAnswer:
        return JsonAnswer(page_of_sessions(owner_of(request), request.query_params))

    def post(self, request: Request) -> JsonAnswer:
        body = read_body(request, is_required=False)
        public_id, fields = read_id(body), read_new_session(body, principal_of(request))
        made = database.submit(
            lambda: create_session(owner_of(request), public_id, **fields)
        ).result()
        return _answer(made, status=201, headers=_ignored(body, CREATE_FIELDS))


class SessionView(APIView):
    def get(self, request: Request, session_id: str) -> JsonAnswer:
        return _answer(find_session(owner_of(request), session_id))

    def patch(self, request: Request, session_id: str) -> JsonAnswer:
        session = find_session(owner_of(request), session_id)
        changes = read_changes(read_body(request))
        if changes:
            database.submit(lambda: update_session(session, **changes)).result()
        return _answer(session)

    def delete(self, request: Request, session_id: str) -> JsonAnswer:
        session = find_session(owner_of(request), session_id)
        delete_session(session)
        return JsonAnswer({"object": "hermes.session.deleted", "id": session_id, "deleted": True})


class SessionMessagesView(APIView):
    def get(self, request: Request, session_id: str) -> JsonAnswer:
        session = find_session(owner_of(request), session_id)
        page = page_of_messages(session_messages(session), request.query_params)
        return JsonAnswer({"object": "list", "session_id": session_id, **page})


class ForkSessionView(APIView):
    def post(self, request: Request, session_id: str) -> JsonAnswer:
        parent = find_session(owner_of(request), session_id)
        body = read_body(request, is_required=False)
        public_id, title = read_id(body), read_title(body.get("title"))
        point = body.get("response_id")
        if point is not None:
            point = short_text(MAX_ID_CHARS)(point, "response_id")
            point = response_id_of(point) or point
        made = database.submit(lambda: fork_session(parent, public_id, title, point)).result()
        return _answer(
            made, status=201, headers=_ignored(body, {"id", "session_id", "title", "response_id"})
        )


class SessionModelView(APIView):
    def post(self, request: Request, session_id: str) -> JsonAnswer:
        session = find_session(owner_of(request), session_id)
        body = read_body(request)
        if body.get("model") is None:
            raise InvalidRequest(
                "model is required.", param="model", code="missing_required_parameter"
            )
        model = resolve_model(body["model"], principal_of(request))
        database.submit(lambda: update_session(session, model=model)).result()
        locked = {
            "object": "hermes.session.model_lock",
            "session_id": session_id,
            "runtime": {"model": model},
        }
        return JsonAnswer(locked, headers=_ignored(body, {"model"}))


def _answer(
    session: Session, status: int = 200, headers: dict[str, str] | None = None
) -> JsonAnswer:
    row = shown_sessions(session.owner_id).filter(pk=session.pk).first()
    if row is None:  # deleted in this moment
        raise SessionNotFound(session.public_id)
    [shown] = session_objects([row])
    return JsonAnswer(
        {"object": "hermes.session", "session": shown}, status=status, headers=headers
    )


def _ignored(body: dict[str, Any], known: set[str]) -> dict[str, str]:
    names = sorted(name for name in body.keys() - known if body[name] is not None)
    return {IGNORED_HEADER: ignored_value(names)} if names else {}
