"""``/api/sessions``: the endpoints that answer with plain JSON."""

from functools import partial

from django.http import QueryDict
from rest_framework.response import Response

from gateway_app.api.sessions.pagination import MessagePagination, SessionPagination
from gateway_app.api.sessions.payloads import annotated_sessions, session_payloads
from gateway_app.api.sessions.requests import (
    CREATE_FIELDS,
    FORK_FIELDS,
    read_changes,
    read_fork,
    read_id,
    read_new_session,
)
from gateway_app.api.sessions.transcript import session_messages
from responses_app.api.base import ApiRequest, ApiView
from responses_app.api.query_params import read_text
from responses_app.database import database
from responses_app.models import Session, SessionQuerySet
from responses_app.protocol.errors import InvalidRequest, SessionNotFound
from responses_app.requests.headers import ignored_headers, read_flag
from responses_app.requests.model_name import resolve_model
from responses_app.services.history.fork import fork_session
from responses_app.services.sessions import (
    create_session,
    delete_session,
    find_session,
    update_session,
)


class SessionsView(ApiView):
    is_body_required = False

    def get(self, request: ApiRequest) -> Response:
        owned = Session.objects.of_owner(request.user.pk)
        listed = _filtered(annotated_sessions(request.user.pk), request.query_params)
        paginator = SessionPagination()
        rows = paginator.paginate_queryset(listed, request, cursors=owned)
        body = paginator.envelope(session_payloads(rows))
        if paginator.has_more and paginator.is_first_page:
            # The first page has every pinned session; these also come in their own place.
            other = listed.filter(is_pinned=True).exclude(pk__in=[row.pk for row in rows])
            pinned = paginator.ordered(other, is_ascending=False)[: paginator.max_limit]
            body["data"] += session_payloads(list(pinned))
        return Response(body)

    def post(self, request: ApiRequest) -> Response:
        body = request.data
        public_id = read_id(body)
        fields = read_new_session(body, request.auth)
        create = partial(create_session, request.user.pk, public_id, **fields)
        made = database.submit(create).result()
        return _session_response(made, status=201, headers=ignored_headers(body, CREATE_FIELDS))


class SessionView(ApiView):
    def get(self, request: ApiRequest, session_id: str) -> Response:
        return _session_response(find_session(request.user.pk, session_id))

    def patch(self, request: ApiRequest, session_id: str) -> Response:
        session = find_session(request.user.pk, session_id)
        changes = read_changes(request.data)
        if changes:
            database.submit(partial(update_session, session, **changes)).result()
        return _session_response(session)

    def delete(self, request: ApiRequest, session_id: str) -> Response:
        session = find_session(request.user.pk, session_id)
        delete_session(session)
        return Response({"object": "hermes.session.deleted", "id": session_id, "deleted": True})


class SessionMessagesView(ApiView):
    def get(self, request: ApiRequest, session_id: str) -> Response:
        session = find_session(request.user.pk, session_id)
        paginator = MessagePagination()
        messages = paginator.paginate_queryset(session_messages(session), request)
        return Response({"session_id": session_id} | paginator.envelope(messages))


class ForkSessionView(ApiView):
    is_body_required = False

    def post(self, request: ApiRequest, session_id: str) -> Response:
        parent = find_session(request.user.pk, session_id)
        body = request.data
        public_id = read_id(body)
        title, fork_point = read_fork(body)
        fork = partial(fork_session, parent, public_id, title, fork_point)
        made = database.submit(fork).result()
        return _session_response(made, status=201, headers=ignored_headers(body, FORK_FIELDS))


class SessionModelView(ApiView):
    def post(self, request: ApiRequest, session_id: str) -> Response:
        session = find_session(request.user.pk, session_id)
        body = request.data
        if body.get("model") is None:
            raise InvalidRequest(
                "model is required.", param="model", code="missing_required_parameter"
            )
        model = resolve_model(body["model"], request.auth)
        database.submit(partial(update_session, session, model=model)).result()
        lock = {
            "object": "hermes.session.model_lock",
            "session_id": session_id,
            "runtime": {"model": model},
        }
        return Response(lock, headers=ignored_headers(body, ("model",)))


def _session_response(
    session: Session, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    row = annotated_sessions(session.owner_id).filter(pk=session.pk).first()
    if row is None:  # deleted meanwhile
        raise SessionNotFound(session.public_id)
    [payload] = session_payloads([row])
    return Response(
        {"object": "hermes.session", "session": payload}, status=status, headers=headers
    )


def _filtered(rows: SessionQuerySet, params: QueryDict) -> SessionQuerySet:
    source = read_text(params, "source")
    title = read_text(params, "title")
    if source is not None:
        rows = rows.filter(source=source)
    if title is not None:
        rows = rows.filter(title=title)
    if not read_flag(params.get("include_hidden"), "include_hidden"):
        rows = rows.filter(is_hidden=False)
    if not read_flag(params.get("include_children", "true"), "include_children"):
        rows = rows.filter(parent__isnull=True)
    return rows
