"""``/chat``: a playground that uses the public API, with a token for the operator."""

import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponseBadRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from gateway_app.operations.dashboard.staff import PLAYGROUND, operator_of, staff_page
from responses_app.http.principals import OPERATOR_SECS, operator_token
from responses_app.models import Response, Session, opening_excerpt
from responses_app.protocol.items import item_text
from responses_app.services.history.branches import read_parents
from responses_app.services.history.chain import inputs_of
from responses_app.services.profiles import default_model, profile_names

SESSION_PREFIX = "playground-"
SHOWN_CHATS = 15
SEARCHED_SESSIONS = 300  # a key of the same user may have made many others
SHOWN_TURNS = 100
MAX_TURN_DIGITS = 9
# Which sessions have an address here. A client may have named others with the same prefix.
SESSION_ID = re.compile(r"playground-[a-z0-9]{8,40}")


@require_GET
@staff_page(PLAYGROUND)
def chat_page(request: HttpRequest, session_id: str | None = None) -> HttpResponseBase:
    """The chat of that id, or the newest: an operator who closed the tab finds the answer."""
    chats = _chats(request)
    if session_id is None and chats and "new" not in request.GET:
        return redirect("chat-session", chats[0].session.public_id)
    if session_id is not None and SESSION_ID.fullmatch(session_id) is None:
        return redirect("chat")
    turns = _turns(request, session_id)
    model = default_model()
    if turns:
        model = turns[-1]["model"]
    return render(
        request,
        "dashboard/chat.html",
        {
            "page": "chat",
            "chats": chats,
            "session_id": session_id or "",
            "prefix": SESSION_PREFIX,
            "turns": turns,
            "models": [default_model(), *profile_names()],
            "model": model,
        },
    )


@require_GET
@staff_page(PLAYGROUND)
def later_turns(request: HttpRequest, session_id: str) -> HttpResponseBase:
    """The turns that another tab or client has added after a turn of this number."""
    after = request.GET.get("after", "0")
    if not after.isdecimal() or len(after) > MAX_TURN_DIGITS:
        return HttpResponseBadRequest("after must be the number of a turn.")
    return JsonResponse({"data": _turns(request, session_id, int(after))})


@require_POST
@staff_page(PLAYGROUND)
def token(request: HttpRequest) -> HttpResponseBase:
    """By POST, so that CSRF protection applies; the root key never reaches a browser."""
    token = operator_token(operator_of(request), request.session.session_key or "")
    return JsonResponse({"token": token, "expires_in": OPERATOR_SECS})


@dataclass(frozen=True)
class Chat:
    session: Session
    name: str  # its title, or the start of its first message


def _chats(request: HttpRequest) -> list[Chat]:
    mine = Session.objects.filter(owner=operator_of(request)).order_by("-last_active_at")
    newest = mine[:SEARCHED_SESSIONS]
    played = [session for session in newest if SESSION_ID.fullmatch(session.public_id)]
    chosen = played[:SHOWN_CHATS]
    openings = Session.objects.filter(pk__in=[session.pk for session in chosen])
    names = dict(openings.annotate(opening=opening_excerpt()).values_list("pk", "opening"))
    chats = []
    for session in chosen:
        name = session.title or names.get(session.pk) or session.public_id
        chats.append(Chat(session, name))
    return chats


def _turns(request: HttpRequest, session_id: str | None, after: int = 0) -> list[dict[str, Any]]:
    """The questions. The page reads the answers from the log, through the API."""
    operator = operator_of(request)
    mine = Response.objects.visible_to(operator.pk).filter(deleted_at__isnull=True)
    in_session = mine.filter(session__public_id=session_id, session__owner=operator)
    found = in_session.filter(turn__gt=after).order_by("-turn")
    shown = ("id", "model", "turn", "session_id", "previous_id", "retry_of")
    rows = list(found.only(*shown)[:SHOWN_TURNS])
    rows.reverse()
    inputs = inputs_of([row.pk for row in rows])
    origins = _origins(rows)
    turns = []
    for row in rows:
        asked = "\n".join(item_text(item) for item in inputs[row.pk])
        turns.append(
            {
                "id": row.pk,
                "turn": row.turn,
                "model": row.model,
                "asked": asked,
                "origin": origins.get(row.pk),
            }
        )
    return turns


def _origins(rows: list[Response]) -> dict[str, dict[str, Any]]:
    """The turn that a retry repeats, or that a branch continues."""
    origins: dict[str, dict[str, Any]] = {}
    for response_id, parent in read_parents(rows).items():
        if parent.is_branched:
            origins[response_id] = {"words": "Branch of", "turn": parent.turn}
    retried = {row.retry_of for row in rows if row.retry_of is not None}
    numbers = dict(Response.objects.filter(pk__in=retried).values_list("pk", "turn"))
    for row in rows:
        if row.retry_of in numbers:
            origins[row.pk] = {"words": "Tries again", "turn": numbers[row.retry_of]}
    return origins
