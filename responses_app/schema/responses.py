"""``/v1/responses``, ``/v1/models`` and ``/health``."""

from responses_app.api.pagination import DEFAULT_LIMIT, MAX_LIMIT
from responses_app.models import Approver, Decision
from responses_app.protocol.status import Status
from responses_app.requests.disconnect import DISCONNECT_HEADER
from responses_app.requests.headers import IGNORED_HEADER, SESSION_HEADER, USAGE_HEADER
from responses_app.requests.idempotency import KEY_HEADER, REPLAYED_HEADER
from responses_app.requests.json_schema import (
    BOOLEAN,
    INTEGER,
    NULL,
    STRING,
    Schema,
    array_of,
    const,
    enum,
    ref,
    shape,
    string,
)
from responses_app.schema import events
from responses_app.schema.builders import (
    SECONDS,
    WHOLE_SECONDS,
    WORD,
    Paths,
    flag,
    header,
    list_of,
    names_of,
    paging,
    query,
)
from responses_app.schema.operations import (
    CURSOR,
    NO_KEY,
    OF_GENERATING,
    generating,
    json,
    operation,
    request_body,
    response,
)

WAITING_CALL: dict[str, Schema] = {
    "request_id": STRING,
    "call_id": STRING,
    "tool": STRING,
    "arguments": string("JSON, as the model wrote it."),
    "reason": string("Why the call needs an approval."),
    "requested_at": SECONDS,
    "expires_at": SECONDS,
    "approver": enum(Approver.values),
    "choices": array_of(
        enum(Decision.values),
        description="What your key may choose; empty where it may not decide.",
    ),
}
SOCKET = """\
The same path takes WebSockets (`ws://…/v1/responses`, the key in the `Authorization` header of the
handshake). Send `{"type": "response.create", …}` with the fields of this body, and read the events
of the stream as frames, one JSON object each, without `[DONE]`. Errors are
`{"type": "error", "status", "error"}` and leave the socket open.
"""
ADMITTED_HEADERS = (SESSION_HEADER, IGNORED_HEADER, REPLAYED_HEADER)
_EVENTS = names_of(events.EVENTS)
# Of a response that has ended.
ENDED_HEADERS = (SESSION_HEADER, USAGE_HEADER)
_RESPONSE = response(json(ref("Response")), "The response.", ENDED_HEADERS)
_RESUMED = response(
    json(ref("Response")) | events.NUMBERED_STREAM,
    f"The response, or its events. {_EVENTS}",
    ENDED_HEADERS,
)
_MADE = response(
    json(ref("Response")) | events.STREAM,
    f"The response, or its events with `stream`. {_EVENTS}",
    (*ADMITTED_HEADERS, USAGE_HEADER),
)
_LIST = paging(DEFAULT_LIMIT, MAX_LIMIT)
_HEALTH = (200, response(json(ref("Health")), "The server answers."))

SCHEMAS: dict[str, Schema] = {
    "ResponseDeleted": shape({"id": STRING, "object": const("response"), "deleted": const(True)}),
    "ResponseList": list_of(ref("Response")),
    "ItemList": list_of(ref("Item")),
    "InputTokens": shape({"object": const("response.input_tokens"), "input_tokens": INTEGER}),
    "Compaction": shape(
        {
            "id": STRING,
            "object": const("response.compaction"),
            "created_at": WHOLE_SECONDS,
            "output": array_of(ref("Item")),
            "usage": ref("Usage"),
        }
    ),
    "WaitingCall": shape(WAITING_CALL),
    "Approval": shape(
        {
            "object": const("hermes.response.approval"),
            "response_id": STRING,
            "pending": array_of(ref("WaitingCall")),
        }
    ),
    "Decided": shape(
        {
            "object": const("hermes.response.approval_response"),
            "response_id": STRING,
            "choice": enum(Decision.values),
            "resolved": INTEGER,
        }
    ),
    "Model": shape(
        {
            "id": STRING,
            "object": const("model"),
            "created": WHOLE_SECONDS,
            "owned_by": STRING,
            "permission": array_of(BOOLEAN, maxItems=0),
            "root": STRING,
            "parent": NULL,
        }
    ),
    "ModelList": shape({"object": const("list"), "data": array_of(ref("Model"))}),
    "Health": shape(
        {"status": enum(("ok", "degraded")), "platform": const("hermes-agent"), "version": STRING}
    ),
}
_COMPACTED = response(
    json(ref("Compaction")),
    "The input that the next chain begins with.",
    (IGNORED_HEADER, REPLAYED_HEADER, USAGE_HEADER),
)

PATHS: Paths = {
    "/health": {"get": operation("health", "Whether the server answers", _HEALTH, security=NO_KEY)},
    "/v1/health": {
        "get": operation("health_v1", "Whether the server answers", _HEALTH, security=NO_KEY)
    },
    "/v1/models": {
        "get": operation(
            "list_models", "The models this key may use", (200, response(json(ref("ModelList"))))
        )
    },
    "/v1/models/{model}": {
        "get": operation(
            "get_model", "One of them", (200, response(json(ref("Model")))), errors=("404",)
        )
    },
    "/v1/responses": {
        "post": generating(
            "create_response",
            "Make a response",
            (200, _MADE),
            description=SOCKET,
            body="CreateResponse",
            headers=(SESSION_HEADER, DISCONNECT_HEADER),
        ),
        "get": operation(
            "list_responses",
            "Your stored responses",
            (200, response(json(ref("ResponseList")))),
            parameters=[
                *_LIST,
                query("status", enum(Status), "Only these."),
                query("session", WORD, "Only those of this session."),
                query("model", WORD, "Only those of this model."),
            ],
        ),
    },
    "/v1/responses/input_tokens": {
        "post": operation(
            "count_input_tokens",
            "An estimate of the input tokens of a request, made without any model",
            (200, response(json(ref("InputTokens")), "The estimate.", (IGNORED_HEADER,))),
            body=request_body(ref("CountTokens")),
            parameters=[header(SESSION_HEADER)],
            errors=("404",),
        )
    },
    "/v1/responses/compact": {
        "post": operation(
            "compact_conversation",
            "A conversation as the messages of its user and one item that stands for the rest",
            (200, _COMPACTED),
            body=request_body(ref("CompactConversation")),
            parameters=[header(KEY_HEADER)],
            errors=(*OF_GENERATING, "502"),
        )
    },
    "/v1/responses/{response_id}": {
        "get": operation(
            "get_response",
            "The response as it is now, or its events",
            (200, _RESUMED),
            parameters=[
                flag("stream", "Its events from the first on, then live ones."),
                query("starting_after", CURSOR, "With stream: those behind this sequence_number."),
                header("Last-Event-ID"),
            ],
            errors=("404",),
        ),
        "delete": operation(
            "delete_response",
            "Erase it; one that runs is cancelled first",
            (200, response(json(ref("ResponseDeleted")))),
            errors=("404", "503"),
        ),
    },
    "/v1/responses/{response_id}/cancel": {
        "post": operation(
            "cancel_response",
            "Stop it; what it had written is kept",
            (200, _RESPONSE),
            errors=("404", "503"),
        )
    },
    "/v1/responses/{response_id}/approval": {
        "get": operation(
            "get_approval",
            "Tool calls that wait for an approval",
            (200, response(json(ref("Approval")))),
            errors=("404",),
        ),
        "post": operation(
            "decide_approval",
            "Decide about a tool call that waits",
            (200, response(json(ref("Decided")))),
            body=request_body(ref("Decision")),
            errors=("404", "409", "503"),
        ),
    },
    "/v1/responses/{response_id}/input_items": {
        "get": operation(
            "list_input_items",
            "The items of its request",
            (200, response(json(ref("ItemList")))),
            parameters=_LIST,
            errors=("404",),
        )
    },
}
