"""``POST /v1/responses/input_tokens``: what a request would cost, without making it."""

from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string
from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView
from responses_app.http.session_key import SESSION_KEY_HEADER, read_session_key
from responses_app.models import Session
from responses_app.protocol.errors import NotFound, PreviousResponseNotFound
from responses_app.protocol.items import Item
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.requests.client_options import read_client_options
from responses_app.requests.create import read_create
from responses_app.requests.headers import (
    IGNORED_HEADER,
    SESSION_HEADER,
    ignored_value,
    read_session_id,
)
from responses_app.services.conversations import find_conversation
from responses_app.services.history.compaction import expand
from responses_app.services.history.context import history_of, read_context
from responses_app.services.history.item_references import resolve_references
from responses_app.services.history.placement import newest_turn
from responses_app.services.history.sent_texts import notes_of_turn, tokens_beside_items
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lookup import find_response


@dataclass(frozen=True)
class _Continued:
    """What the request continues: a session that may be still to begin, and its history."""

    session: Session | None = None
    conversation_id: str | None = None
    previous_id: str | None = None


class InputTokensView(ApiView):
    def post(self, request: ApiRequest) -> Response:
        admission = _admission(request)
        continued = _continued(admission)
        newer = expand(admission.owner_id, resolve_references(admission.owner_id, admission.items))
        items = newer.items
        if not newer.replaces_all:
            history = history_of(continued.conversation_id, continued.previous_id)
            items = read_context(admission.owner_id, history).items + items
        items = _readable(admission, items)
        notes = notes_of_turn(admission, continued.session)
        beside = tokens_beside_items(admission, continued.session, continued.previous_id, notes)
        tokens = admission.limits.tokens(beside + estimate_tokens(items, None, []))
        headers = {}
        if admission.ignored:
            headers[IGNORED_HEADER] = ignored_value(admission.ignored)
        counted = {"object": "response.input_tokens", "input_tokens": tokens}
        return Response(counted, headers=headers)


def _readable(admission: Admission, items: list[Item]) -> list[Item]:
    """With the text of files that the model gets as text; only the gateway can read them."""
    readable = import_string(settings.HERMES_READABLE_ITEMS)
    found: list[Item] = readable(admission.model, admission.owner_id, items)
    return found


def _admission(request: ApiRequest) -> Admission:
    given: dict[str, Any] = {"input": ""}
    for name, value in request.data.items():
        if value is not None:
            given[name] = value
    session_id = read_session_id(request.headers.get(SESSION_HEADER))
    chosen = read_client_options(request.headers.get)
    admission = read_create(given, request.auth, session_id, chosen).admission
    session_key = read_session_key(request.headers.get(SESSION_KEY_HEADER))
    return replace(admission, session_key=session_key)


def _continued(admission: Admission) -> _Continued:
    owner_id = admission.owner_id
    if admission.conversation is not None:
        conversation = find_conversation(owner_id, admission.conversation)
        return _Continued(conversation.session, conversation_id=conversation.pk)
    if admission.previous_id is not None:
        try:
            previous = find_response(owner_id, admission.previous_id)
        except NotFound:
            raise PreviousResponseNotFound(admission.previous_id) from None
        return _with_history(admission, previous.session, previous.pk)
    if admission.session_id is not None:
        session = Session.objects.of_owner(owner_id).filter(public_id=admission.session_id).first()
        if session is not None:
            newest = newest_turn(session)
            return _with_history(admission, session, getattr(newest, "pk", None))
    return _Continued()


def _with_history(admission: Admission, session: Session, previous_id: str | None) -> _Continued:
    if admission.brings_history:
        return _Continued(session)
    return _Continued(session, previous_id=previous_id)
