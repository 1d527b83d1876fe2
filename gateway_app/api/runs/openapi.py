"""``/v1/runs``, described."""

from gateway_app.api.runs.requests import FIELDS
from gateway_app.api.runs.statuses import RunStatus
from responses_app.models import Approver, Decision
from responses_app.requests.headers import SESSION_HEADER
from responses_app.requests.json_schema import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    enum,
    nullable,
    ref,
    shape,
    string,
    union,
)
from responses_app.requests.structures import object_of
from responses_app.schema.builders import (
    SECONDS,
    WORD,
    Paths,
    frame,
    header,
    list_of,
    names_of,
    paging,
    query,
    stream,
)
from responses_app.schema.items import INCOMPLETE
from responses_app.schema.operations import (
    CURSOR,
    generating,
    json,
    operation,
    request_body,
    response,
)
from responses_app.schema.responses import ADMITTED_HEADERS, ENDED_HEADERS, WAITING_CALL

# -- events -----------------------------------------------------------------------------
TOOL_CALL = shape(
    {
        "id": STRING,
        "type": const("function"),
        "function": shape({"name": STRING, "arguments": STRING}),
    },
    description="Of your own tools.",
)
APPROVAL_REQUEST: dict[str, Schema] = {
    "request_id": STRING,
    "tool": STRING,
    "command": string("The call in one line."),
    "arguments": STRING,
    "description": string("Why the call needs an approval."),
    "expires_at": SECONDS,
    "approver": enum(Approver.values),
    "choices": array_of(
        enum(Decision.values),
        description="What the key of the request may choose; empty where it may not decide.",
    ),
}
APPROVAL_ANSWER: dict[str, Schema] = {
    "request_id": STRING,
    "tool": STRING,
    "choice": enum(Decision.values),
    "resolved": INTEGER,
    "expired": BOOLEAN,
}
_RESULT: dict[str, Schema] = {"output": STRING, "usage": nullable(ref("Usage"))}
_PARTIAL: dict[str, Schema] = {
    "partial": const(True),
    "incomplete_details": INCOMPLETE,
    "tool_calls": array_of(TOOL_CALL),
}
_TOOL: dict[str, Schema] = {"tool": STRING, "call_id": STRING}
EVENTS: dict[str, dict[str, Schema]] = {
    "message.delta": {"delta": STRING},
    "reasoning.delta": {"delta": STRING},
    "reasoning.available": {"text": STRING},
    "tool.started": _TOOL | {"preview": STRING},
    "tool.completed": _TOOL | {"duration": NUMBER, "error": BOOLEAN},
    "approval.request": APPROVAL_REQUEST,
    "approval.responded": APPROVAL_ANSWER,
    "run.completed": _RESULT | _PARTIAL,
    "run.failed": _RESULT | {"error": STRING},
    "run.cancelled": _RESULT,
}
_STAMP: dict[str, Schema] = {"run_id": STRING, "timestamp": SECONDS, "seq": INTEGER}
_STREAM = stream(frame(ref("RunEvent"), id_="Its position in the log, for `after`.", has_id=True))

# -- the run ----------------------------------------------------------------------------
_RUN: dict[str, Schema] = {
    "object": const("hermes.run"),
    "id": string("run_…"),
    "run_id": STRING,
    "response_id": STRING,
    "status": enum(RunStatus),
    "created_at": SECONDS,
    "updated_at": SECONDS,
    "session_id": STRING,
    "model": STRING,
}
# Fields that a run has once they are known.
_AS_KNOWN = _RESULT | _PARTIAL
_AS_KNOWN |= {
    "last_event": enum(EVENTS),
    "error": STRING,
    "approval": shape(WAITING_CALL | {"pending": array_of(ref("WaitingCall"))}),
}
_EVENTS = {name: shape(EVENTS[name] | _STAMP, _PARTIAL) for name in EVENTS}
SCHEMAS: dict[str, Schema] = {
    "CreateRun": object_of(FIELDS, ("input",)).schema,
    "RunStarted": shape(
        {
            "run_id": STRING,
            "status": const("started"),
            "replayed": BOOLEAN,
            "response_id": STRING,
            "session_id": STRING,
        }
    ),
    "Run": shape(_RUN | _AS_KNOWN, _AS_KNOWN),
    "RunList": list_of(ref("Run")),
    "RunStopping": shape({"run_id": STRING, "status": const("stopping")}),
    "RunDecided": shape(
        {
            "object": const("hermes.run.approval_response"),
            "run_id": STRING,
            "choice": enum(Decision.values),
            "resolved": INTEGER,
        }
    ),
    "RunEvent": union("event", _EVENTS),
}
_DECIDED = (200, response(json(ref("RunDecided"))))
PATHS: Paths = {
    "/v1/runs": {
        "post": generating(
            "create_run",
            "Start a run",
            (
                202,
                response(json(ref("RunStarted")), "It is stored, and will run.", ADMITTED_HEADERS),
            ),
            body="CreateRun",
            headers=(SESSION_HEADER,),
        ),
        "get": operation(
            "list_runs",
            "Your runs",
            (200, response(json(ref("RunList")))),
            parameters=[
                *paging(),
                query("status", enum(RunStatus), "Only these."),
                query("session_id", WORD, "Only those of this session."),
            ],
        ),
    },
    "/v1/runs/{run_id}": {
        "get": operation(
            "get_run",
            "The run as it is now",
            (200, response(json(ref("Run")), "The run.", ENDED_HEADERS)),
            errors=("404",),
        )
    },
    "/v1/runs/{run_id}/events": {
        "get": operation(
            "stream_run_events",
            "Its events from the first on, then live ones",
            (
                200,
                response(
                    _STREAM,
                    f"{names_of(EVENTS)} A complete stream ends with `: stream closed`.",
                    (SESSION_HEADER,),
                ),
            ),
            parameters=[
                query("after", CURSOR, "Those after the event with this id."),
                query("last_seq", CURSOR, "The same: those after the event with this seq."),
                header("Last-Event-ID"),
            ],
            errors=("404",),
        )
    },
    "/v1/runs/{run_id}/approval": {
        "post": operation(
            "decide_run_approval",
            "Decide about a tool call that waits",
            _DECIDED,
            body=request_body(ref("Decision")),
            errors=("404", "409", "503"),
        )
    },
    "/v1/runs/{run_id}/stop": {
        "post": operation(
            "stop_run",
            "Stop it; what it had written is kept",
            (
                200,
                response(
                    json(any_of(ref("RunStopping"), ref("Run"))),
                    "It will stop; or the run, if it has ended.",
                ),
            ),
            errors=("404", "503"),
        )
    },
}
