"""``/api/sessions``, described."""

from gateway_app.api.runs.openapi import TOOL_CALL
from gateway_app.api.sessions.openapi_events import EVENTS, MESSAGE, OUTCOME, RUNTIME, STREAM, USAGE
from gateway_app.api.sessions.pagination import (
    MAX_MESSAGES,
    MAX_OFFSET,
    MAX_SESSIONS,
    ORDERS,
    SESSIONS,
)
from gateway_app.api.sessions.requests import CHANGES, CREATE_FIELDS, FORK_FIELDS
from gateway_app.api.sessions.turn_request import TURN_FIELDS
from responses_app.requests.fields import schemas_of
from responses_app.requests.headers import IGNORED_HEADER, USAGE_HEADER, turn_policy
from responses_app.requests.json_schema import (
    BOOLEAN,
    INTEGER,
    NULL,
    STRING,
    Schema,
    array_of,
    const,
    described,
    enum,
    nullable,
    ref,
    shape,
    string,
    whole_number,
)
from responses_app.requests.model_name import model_name
from responses_app.requests.structures import object_of
from responses_app.schema.builders import (
    SECONDS,
    WORD,
    Paths,
    flag,
    list_of,
    names_of,
    paging,
    query,
)
from responses_app.schema.operations import (
    generating,
    json,
    operation,
    request_body,
    response,
)
from responses_app.schema.responses import ADMITTED_HEADERS

_ANSWER_HEADERS = (*ADMITTED_HEADERS, USAGE_HEADER)
_OFFSET = query("offset", whole_number(0, MAX_OFFSET, default=0), "In place of a cursor.")
# -- what is returned -------------------------------------------------------------------
_UNCOUNTED = described(NULL, "This server does not count it.")
_SESSION: dict[str, Schema] = {
    "id": STRING,
    "source": STRING,
    "user_id": STRING,
    "model": nullable(STRING),
    "title": nullable(STRING),
    "started_at": SECONDS,
    "ended_at": nullable(SECONDS),
    "end_reason": nullable(STRING),
    "message_count": INTEGER,
    "turn_count": INTEGER,
    "tool_call_count": INTEGER,
    "input_tokens": INTEGER,
    "output_tokens": INTEGER,
    "cache_read_tokens": INTEGER,
    "cache_write_tokens": INTEGER,
    "reasoning_tokens": INTEGER,
    "estimated_cost_usd": _UNCOUNTED,
    "actual_cost_usd": _UNCOUNTED,
    "api_call_count": _UNCOUNTED,
    "parent_session_id": nullable(STRING),
    "forked_from": nullable(string("The response it goes on from.")),
    "last_active": SECONDS,
    "preview": nullable(string("How it begins.")),
    "pinned": BOOLEAN,
    "archived": BOOLEAN,
    "hidden": BOOLEAN,
    "unread": BOOLEAN,
    "has_system_prompt": BOOLEAN,
    "has_model_config": BOOLEAN,
    "turn_policy": turn_policy.schema,
}
_STORED_MESSAGE = MESSAGE | {
    "session_id": STRING,
    "timestamp": SECONDS,
    "token_count": nullable(INTEGER),
    "finish_reason": nullable(
        enum(("stop", "length", "tool_calls", "error", "cancelled", "incomplete"))
    ),
}
_PAGINATION = shape(
    {"limit": INTEGER, "offset": INTEGER, "order": enum(ORDERS), "returned": INTEGER}
)


def _turn(message: str, other: str, absent: str) -> Schema:
    """A body has one field of each pair of synonyms at most, and a message."""
    return {
        "required": [message],
        "properties": {message: {"not": NULL}, other: NULL, absent: NULL},
    }


_TURNS = [
    _turn("message", "input", "system_message"),
    _turn("message", "input", "instructions"),
    _turn("input", "message", "system_message"),
    _turn("input", "message", "instructions"),
]
_ANSWER: dict[str, Schema] = {
    "object": const("hermes.session.chat.completion"),
    "session_id": STRING,
    "run_id": STRING,
    "response_id": STRING,
    "message": shape(
        {"role": const("assistant"), "content": STRING, "tool_calls": array_of(TOOL_CALL)},
        ("tool_calls",),
    ),
    "usage": USAGE,
    "runtime": RUNTIME,
}
_CHANGES = schemas_of(CHANGES)
SCHEMAS: dict[str, Schema] = {
    "CreateSession": object_of(CREATE_FIELDS).schema,
    "UpdateSession": shape(_CHANGES, _CHANGES) | {"additionalProperties": False},
    "ForkSession": object_of(FORK_FIELDS).schema,
    "SetSessionModel": object_of({"model": model_name}, ("model",)).schema,
    "SessionTurn": object_of(TURN_FIELDS).schema | {"anyOf": _TURNS},
    "Session": shape(_SESSION),
    "OneSession": shape({"object": const("hermes.session"), "session": ref("Session")}),
    "SessionList": list_of(ref("Session"), limit=INTEGER, offset=INTEGER),
    "SessionDeleted": shape(
        {"object": const("hermes.session.deleted"), "id": STRING, "deleted": const(True)}
    ),
    "SessionMessage": shape(_STORED_MESSAGE),
    "SessionMessageList": list_of(ref("SessionMessage"), session_id=STRING, pagination=_PAGINATION),
    "SessionModel": shape(
        {"object": const("hermes.session.model_lock"), "session_id": STRING, "runtime": RUNTIME},
    ),
    "SessionAnswer": shape(_ANSWER | OUTCOME),
}
_SHOWN = (200, response(json(ref("OneSession")), "The session."))
_MADE = (201, response(json(ref("OneSession")), "The new session.", (IGNORED_HEADER,)))
_GONE = ("404", "503")
PATHS: Paths = {
    "/api/sessions": {
        "get": operation(
            "list_sessions",
            "Your sessions, the most recently active first",
            (200, response(json(ref("SessionList")))),
            parameters=[
                *paging(SESSIONS, MAX_SESSIONS),
                _OFFSET,
                query("source", WORD, "Only these."),
                query("title", WORD, "Only this one."),
                flag("include_hidden", "Hidden ones, too."),
                flag("include_children", "Forks, too.", default=True),
            ],
        ),
        "post": operation(
            "create_session",
            "Make a session",
            _MADE,
            body=request_body(ref("CreateSession"), is_required=False),
            errors=("404", "409", "503"),
        ),
    },
    "/api/sessions/{session_id}": {
        "get": operation("get_session", "A session", _SHOWN, errors=("404",)),
        "patch": operation(
            "update_session",
            "Change it",
            _SHOWN,
            body=request_body(ref("UpdateSession")),
            errors=_GONE,
        ),
        "delete": operation(
            "delete_session",
            "Erase the content of all its turns",
            (200, response(json(ref("SessionDeleted")))),
            errors=_GONE,
        ),
    },
    "/api/sessions/{session_id}/messages": {
        "get": operation(
            "list_session_messages",
            "Its messages, in the order of the conversation",
            (200, response(json(ref("SessionMessageList")))),
            parameters=[
                query(
                    "limit",
                    whole_number(1, MAX_MESSAGES, default=MAX_MESSAGES),
                    "The number of entries.",
                ),
                _OFFSET,
                query(
                    "order", enum(ORDERS) | {"default": "latest"}, "The end where the page starts."
                ),
                query("after", WORD, "Those that follow this id."),
                query("before", WORD, "Those directly in front of this id."),
            ],
            errors=("404",),
        )
    },
    "/api/sessions/{session_id}/fork": {
        "post": operation(
            "fork_session",
            "A session that goes on from one of its turns",
            _MADE,
            body=request_body(ref("ForkSession"), is_required=False),
            errors=("404", "409", "503"),
        )
    },
    "/api/sessions/{session_id}/model": {
        "post": operation(
            "set_session_model",
            "Set the model of its chat",
            (200, response(json(ref("SessionModel")), headers=(IGNORED_HEADER,))),
            body=request_body(ref("SetSessionModel")),
            errors=_GONE,
        )
    },
    "/api/sessions/{session_id}/chat": {
        "post": generating(
            "chat_in_session",
            "One more turn, answered when it is done",
            (200, response(json(ref("SessionAnswer")), "The answer.", _ANSWER_HEADERS)),
            body="SessionTurn",
            errors=("502",),
        )
    },
    "/api/sessions/{session_id}/chat/stream": {
        "post": generating(
            "stream_chat_in_session",
            "One more turn, as events",
            (
                200,
                response(
                    STREAM,
                    f"{names_of(EVENTS)} A stream without `done` was interrupted.",
                    ADMITTED_HEADERS,
                ),
            ),
            body="SessionTurn",
        )
    },
}
