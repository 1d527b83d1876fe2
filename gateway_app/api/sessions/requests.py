"""The bodies of ``/api/sessions``."""

import secrets
import time
from functools import partial
from typing import Any

from django.utils import timezone

from responses_app.http.principals import Principal
from responses_app.models import MAX_TITLE_CHARS, TurnPolicy
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.ids import response_id_of
from responses_app.requests.fields import (
    Field,
    boolean,
    optional,
    read_fields,
    short_text,
    text,
)
from responses_app.requests.headers import session_id, turn_policy
from responses_app.requests.items import item_id
from responses_app.requests.json_schema import STRING
from responses_app.requests.model_name import model_name, resolve_model

SOURCE = "api_server"
MAX_SOURCE_CHARS = 20
MAX_REASON_CHARS = 100


# -- fields -----------------------------------------------------------------------------
def _read_title(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > MAX_TITLE_CHARS:
        raise InvalidRequest(
            f"{name} must be a text of at most {MAX_TITLE_CHARS} characters.",
            param=name,
            code="invalid_title",
        )
    return value.strip()


def _read_source(value: Any, name: str) -> str:
    if value == "":
        return SOURCE
    return short_text(MAX_SOURCE_CHARS)(value, name)


def _read_prompt(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} must be a text.", param=name, code="invalid_system_prompt")
    return value


def _read_reason(value: Any, name: str) -> str:
    reason = text(value, name)
    if len(reason) > MAX_REASON_CHARS:
        raise InvalidRequest(f"{name} may have at most {MAX_REASON_CHARS} characters.", param=name)
    return reason


_title = Field(_read_title, STRING | {"maxLength": MAX_TITLE_CHARS}).described(
    "Unique among yours."
)
_reason = Field(_read_reason, STRING | {"maxLength": MAX_REASON_CHARS}).described(
    "Ends it until its next turn."
)
_turn_policy = turn_policy.then(TurnPolicy)
_ID_FIELDS: dict[str, Field[str]] = {
    "id": session_id.described("Printable ASCII without slashes; absent, one is made."),
    "session_id": session_id.described("The same as id."),
}


# -- a new session ----------------------------------------------------------------------
CREATE_FIELDS: dict[str, Field[Any]] = _ID_FIELDS | {
    "title": _title,
    "source": Field(_read_source, STRING | {"maxLength": MAX_SOURCE_CHARS}).described(
        "Where it comes from."
    ),
    "system_prompt": Field(_read_prompt, STRING).described(
        "The model gets it in every turn of the session."
    ),
    "model": model_name,
    "turn_policy": _turn_policy,
}
FORK_FIELDS: dict[str, Field[Any]] = _ID_FIELDS | {
    "title": _title,
    "response_id": item_id.described("A resp_ or run_ id of this session to go on from."),
}


def read_id(body: dict[str, Any]) -> str:
    chosen: set[str] = set(read_fields(_ID_FIELDS, body).values())
    if len(chosen) > 1:
        raise InvalidRequest(
            "id and session_id mean the same; send one of them.", param="session_id"
        )
    if chosen:
        return chosen.pop()
    return f"api_{int(time.time())}_{secrets.token_hex(4)}"


def read_new_session(body: dict[str, Any], principal: Principal) -> dict[str, Any]:
    """The columns of a new session."""
    given = read_fields(CREATE_FIELDS, body)
    columns = {
        "title": given.get("title", ""),
        "source": given.get("source", SOURCE),
        "instructions": given.get("system_prompt", ""),
        "model": "",
    }
    if "model" in given:
        columns["model"] = resolve_model(given["model"], principal)
    if "turn_policy" in given:
        columns["turn_policy"] = given["turn_policy"]
    return columns


def read_fork(body: dict[str, Any]) -> tuple[str, str | None]:
    """The title of a fork, and the response that it goes on from."""
    given = read_fields(FORK_FIELDS, body)
    response_id = given.get("response_id")
    if response_id is not None:
        response_id = response_id_of(response_id) or response_id
    return given.get("title", ""), response_id


# -- changes ----------------------------------------------------------------------------
def _column(name: str, value: Any) -> dict[str, Any]:
    return {name: value}


def _title_column(title: str | None) -> dict[str, Any]:
    return {"title": title or ""}


def _end_columns(reason: str | None) -> dict[str, Any]:
    """A reason ends the session, and null opens it again; so does its next turn."""
    if not reason:
        return {"end_reason": "", "ended_at": None}
    return {"end_reason": reason, "ended_at": timezone.now()}


def _policy_column(policy: TurnPolicy | None) -> dict[str, Any]:
    return {"turn_policy": policy or TurnPolicy.QUEUE}


# Each field is read as the columns that it changes.
CHANGES: dict[str, Field[dict[str, Any]]] = {
    "title": optional(_title).then(_title_column),
    "end_reason": optional(_reason).then(_end_columns),
    "pinned": boolean.then(partial(_column, "is_pinned")),
    "archived": boolean.then(partial(_column, "is_archived")),
    "hidden": boolean.then(partial(_column, "is_hidden")),
    "unread": boolean.then(partial(_column, "is_unread")),
    "turn_policy": optional(_turn_policy).then(_policy_column),
}


def read_changes(body: dict[str, Any]) -> dict[str, Any]:
    """The columns that a PATCH changes."""
    columns: dict[str, Any] = {}
    for name, value in body.items():
        if name not in CHANGES:
            raise InvalidRequest(
                f"{name} can't be changed; these can: {', '.join(CHANGES)}.",
                param=name,
                code="unsupported_session_field",
            )
        columns |= CHANGES[name](value, name)
    return columns
