"""``/api/sessions``, described."""

from gateway_app.api.runs.openapi import (
    ALWAYS_STORED,
    TOOL_CALL,
    UNUSED,
)
from gateway_app.api.sessions.openapi_events import EVENTS, MESSAGE, OUTCOME, RUNTIME, STREAM, USAGE
from gateway_app.api.sessions.pagination import (
    MAX_MESSAGES,
    MAX_OFFSET,
    MAX_SESSIONS,
    ORDERS,
    SESSIONS,
)
from gateway_app.api.sessions.requests import MAX_REASON_CHARS, MAX_SOURCE_CHARS
from responses_app.models.sessions import MAX_TITLE_CHARS, TurnPolicy
from responses_app.requests.headers import IGNORED_HEADER
from responses_app.requests.items import MAX_ID_CHARS
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
    request_object,
    shape,
    string,
    whole_number,
)
from responses_app.schema.builders import (
    SECONDS,
    WORD,
    Paths,
    list_of,
    names_of,
    paging,
    query,
)
from responses_app.schema.inputs import SESSION_INPUT
from responses_app.schema.operations import (
    generating,
    json,
    operation,
    request_body,
    response,
    session_id,
)
from responses_app.schema.requests import (
    RESPONSE_FIELDS,
    SHARED,
    UNSUPPORTED,
    short,
)
from responses_app.schema.responses import ADMITTED_HEADERS

_FLAG = query("include_hidden", {**BOOLEAN, "default": False}, "Hidden ones, too.")
_OFFSET = query("offset", whole_number(0, MAX_OFFSET, default=0), "In place of a cursor.")
_POLICY = enum(TurnPolicy.values)
_NEW_ID = session_id("Printable ASCII without slashes; absent, one is made.")
_TITLE = string("Unique among yours.", maxLength=MAX_TITLE_CHARS)

# -- what is asked ----------------------------------------------------------------------
CREATE: dict[str, Schema] = {
    "id": _NEW_ID,
    "session_id": described(_NEW_ID, "The same as id."),
    "title": _TITLE,
    "source": string("Where it comes from.", maxLength=MAX_SOURCE_CHARS),
    "system_prompt": string("Said to the model in every turn of the session."),
    "model": SHARED["model"],
    "turn_policy": _POLICY,
}
UPDATE: dict[str, Schema] = {
    "title": nullable(_TITLE),
    "end_reason": nullable(string("Ends it until its next turn.", maxLength=MAX_REASON_CHARS)),
    **dict.fromkeys(("pinned", "archived", "hidden", "unread"), BOOLEAN),
    "turn_policy": nullable(_POLICY),
}
_FORK: dict[str, Schema] = {
    **{name: CREATE[name] for name in ("id", "session_id", "title")},
    "response_id": short("A resp_ or run_ id of this session to go on from.", MAX_ID_CHARS),
}
CHAT: dict[str, Schema] = {
    **{
        name: RESPONSE_FIELDS[name]
        for name in RESPONSE_FIELDS
        if name not in ("conversation", "previous_response_id")
    },
    "message": SESSION_INPUT,
    "input": described(SESSION_INPUT, "The same as message."),
    "system_message": string("Goes with this turn."),
    "instructions": string("The same as system_message."),
    **dict.fromkeys(("conversation", "previous_response_id"), UNSUPPORTED),
    "store": ALWAYS_STORED,
    **dict.fromkeys(
        ("provider", "model_options", "stream", "background", "stream_options"), UNUSED
    ),
}

# -- what is answered -------------------------------------------------------------------
_SESSION: dict[str, Schema] = {
    "id": STRING,
    "source": STRING,
    "user_id": STRING,
    "model": nullable(STRING),
    "title": nullable(STRING),
    "started_at": SECONDS,
    "ended_at": nullable(SECONDS),
    "end_reason": nullable(STRING),
    **dict.fromkeys(
        ("message_count", "turn_count", "tool_call_count", "input_tokens", "output_tokens"), INTEGER
    ),
    **dict.fromkeys(("cache_read_tokens", "cache_write_tokens", "reasoning_tokens"), INTEGER),
    **dict.fromkeys(
        ("estimated_cost_usd", "actual_cost_usd", "api_call_count"),
        described(NULL, "Nothing here counts it."),
    ),
    "parent_session_id": nullable(STRING),
    "forked_from": nullable(string("The response it goes on from.")),
    "last_active": SECONDS,
    "preview": nullable(string("How it begins.")),
    **dict.fromkeys(
        ("pinned", "archived", "hidden", "unread", "has_system_prompt", "has_model_config"), BOOLEAN
    ),
    "turn_policy": _POLICY,
}
_STORED_MESSAGE: dict[str, Schema] = {
    **MESSAGE,
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


def _turn(message: str, absent: str) -> Schema:
    """The words of Hermes and of Responses mean the same: one of each two may be there."""
    (other,) = {"message", "input"} - {message}
    return {
        "required": [message],
        "properties": {message: {"not": NULL}, other: NULL, absent: NULL},
    }


_TURNS = [
    _turn(message, absent)
    for message in ("message", "input")
    for absent in ("system_message", "instructions")
]
SCHEMAS: dict[str, Schema] = {
    "CreateSession": request_object(CREATE),
    "UpdateSession": {**shape(UPDATE, UPDATE), "additionalProperties": False},
    "ForkSession": request_object(_FORK),
    "SetSessionModel": request_object({"model": SHARED["model"]}, ("model",)),
    "SessionTurn": {**request_object(CHAT), "anyOf": _TURNS},
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
    "SessionAnswer": shape(
        {
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
            **OUTCOME,
        }
    ),
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
                _FLAG,
                query("include_children", {**BOOLEAN, "default": True}, "Forks, too."),
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
            "Its messages, in the order in which they were said",
            (200, response(json(ref("SessionMessageList")))),
            parameters=[
                query("limit", whole_number(1, MAX_MESSAGES, default=MAX_MESSAGES), "How many."),
                _OFFSET,
                query(
                    "order", {**enum(ORDERS), "default": "latest"}, "The end from which is counted."
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
            (200, response(json(ref("SessionAnswer")), "The answer.", ADMITTED_HEADERS)),
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
                    STREAM, f"{names_of(EVENTS)} One without `done` was cut.", ADMITTED_HEADERS
                ),
            ),
            body="SessionTurn",
        )
    },
}
