"""The bodies of ``/api/sessions``."""

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.utils import timezone

from gateway_app.api.runs.requests import as_content, as_items
from responses_app.http.principals import Principal
from responses_app.models import Session
from responses_app.models.responses import Kind
from responses_app.models.sessions import MAX_TITLE_CHARS, TurnPolicy
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.create import read_create
from responses_app.requests.fields import boolean, short_text, text
from responses_app.requests.headers import read_session_id, read_turn_policy
from responses_app.requests.items import read_input
from responses_app.requests.model_name import resolve_model
from responses_app.services.lifecycle.admission import Admission

SOURCE = "api_server"
MAX_SOURCE_CHARS = 20
MAX_REASON_CHARS = 100
CREATE_FIELDS = {"id", "session_id", "title", "source", "system_prompt", "model", "turn_policy"}
FORK_FIELDS = {"id", "session_id", "title", "response_id"}
CHAT_WORDS = {"message": "input", "system_message": "instructions"}
PARTS = {"text", "image_url"}  # a message has content instead
UNUSED = ("provider", "model_options", "stream", "background", "stream_options")


def read_id(body: dict[str, Any]) -> str:
    given = {name: body[name] for name in ("id", "session_id") if body.get(name) is not None}
    read = [
        read_session_id(id_ if isinstance(id_, str) else "", name) or ""
        for name, id_ in given.items()
    ]
    if len(set(read)) > 1:
        raise InvalidRequest(
            "id and session_id mean the same; send one of them.", param="session_id"
        )
    return read[0] if read else f"api_{int(time.time())}_{secrets.token_hex(4)}"


def read_new_session(body: dict[str, Any], principal: Principal) -> dict[str, Any]:
    """The columns of a new session."""
    model, source = body.get("model"), body.get("source")
    return {
        "title": read_title(body.get("title")),
        "source": SOURCE
        if source in (None, "")
        else short_text(MAX_SOURCE_CHARS)(source, "source"),
        "instructions": _read_prompt(body.get("system_prompt")),
        "model": "" if model is None else resolve_model(model, principal),
        **_read_policy(body),
    }


def read_title(value: Any) -> str:
    """Null and an empty text both mean none."""
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > MAX_TITLE_CHARS:
        raise InvalidRequest(
            f"title must be a text of at most {MAX_TITLE_CHARS} characters.",
            param="title",
            code="invalid_title",
        )
    return value.strip()


def read_changes(body: dict[str, Any]) -> dict[str, Any]:
    """The columns that a PATCH changes."""
    for name in body:
        if name not in CHANGES:
            raise InvalidRequest(
                f"{name} can't be changed; these can: {', '.join(CHANGES)}.",
                param=name,
                code="unsupported_session_field",
            )
    return {
        column: value for name in body for column, value in CHANGES[name](body[name], name).items()
    }


def read_chat(
    body: dict[str, Any], principal: Principal, session: Session, tool_form: str | None = None
) -> Admission:
    """A turn of a session: its history is the session's, its words are in the body."""
    given = {name: value for name, value in body.items() if value is not None}
    _check_words(given)
    unused = sorted(name for name in UNUSED if name in given)
    asked = {
        CHAT_WORDS.get(name, name): value for name, value in given.items() if name not in unused
    }
    if session.model:
        asked = {"model": session.model, **asked}
    asked["input"] = _as_input(asked["input"])
    # Errors name what the client wrote.
    read_input(asked["input"], principal.owner_id, "message" if "message" in given else "input")
    text(given.get("system_message", ""), "system_message")
    admission = read_create(asked, principal, session.public_id, tool_form).admission
    if not admission.is_stored:
        raise InvalidRequest("A session keeps its turns: store can't be false here.", param="store")
    return replace(admission, kind=Kind.SESSION_CHAT, ignored=(*admission.ignored, *unused))


def _check_words(given: dict[str, Any]) -> None:
    for word, other in CHAT_WORDS.items():
        if word in given and other in given:
            raise InvalidRequest(f"{word} and {other} mean the same; send one of them.", param=word)
    for name in ("conversation", "previous_response_id"):
        if name in given:
            raise InvalidRequest(
                f"A session has a history of its own. Leave {name} out, or fork the session.",
                param=name,
            )
    if "message" not in given and "input" not in given:
        raise InvalidRequest(
            "message is required.", param="message", code="missing_required_parameter"
        )


def _as_input(value: Any) -> Any:
    """A text, items, or the parts of one message."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(part, dict) and PARTS & part.keys() for part in value)
    ):
        return [{"role": "user", "content": as_content(value)}]
    return as_items(value)


def _read_prompt(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(
            "system_prompt must be a text.", param="system_prompt", code="invalid_system_prompt"
        )
    return value or ""


def _read_policy(body: dict[str, Any]) -> dict[str, Any]:
    policy = read_turn_policy(body.get("turn_policy"), "turn_policy")
    return {} if policy is None else {"turn_policy": policy}


def _flag(column: str) -> Callable[[Any, str], dict[str, Any]]:
    return lambda value, name: {column: boolean(value, name)}


def _end(value: Any, name: str) -> dict[str, Any]:
    """A reason ends the session, null opens it again; so does its next turn."""
    reason = "" if value is None else text(value, name)
    if len(reason) > MAX_REASON_CHARS:
        raise InvalidRequest(f"{name} may have at most {MAX_REASON_CHARS} characters.", param=name)
    return {"end_reason": reason, "ended_at": timezone.now() if reason else None}


CHANGES: dict[str, Callable[[Any, str], dict[str, Any]]] = {
    "title": lambda value, _: {"title": read_title(value)},
    "end_reason": _end,
    "pinned": _flag("is_pinned"),
    "archived": _flag("is_archived"),
    "hidden": _flag("is_hidden"),
    "unread": _flag("is_unread"),
    "turn_policy": lambda value, name: {
        "turn_policy": read_turn_policy(value, name) or TurnPolicy.QUEUE
    },
}
