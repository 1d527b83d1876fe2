"""The events of a session's turn, described."""

from gateway_app.api.runs.openapi import APPROVAL_ANSWER, APPROVAL_REQUEST, TOOL_CALL
from responses_app.requests.json_schema import (
    ANYTHING,
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
)
from responses_app.schema.builders import (
    SECONDS,
    frame,
    stream,
)

MESSAGE: dict[str, Schema] = {
    "id": nullable(STRING),
    "role": enum(("user", "assistant", "system", "developer", "tool")),
    "content": any_of(STRING, array_of(ref("Part"))),
    "tool_calls": nullable(array_of(TOOL_CALL)),
    **dict.fromkeys(
        ("tool_call_id", "tool_name", "reasoning", "reasoning_content"), nullable(STRING)
    ),
    "display_kind": nullable(string("The type of an item that is no message.")),
}
RUNTIME = shape({"model": STRING})
OUTCOME = dict.fromkeys(("completed", "partial", "interrupted"), BOOLEAN)
USAGE = nullable(ref("Usage"))
_TOOL: dict[str, Schema] = {
    **dict.fromkeys(("message_id", "tool_name", "tool_call_id", "preview"), STRING),
    "args": ANYTHING,
}
_ENDED_TOOL = {**_TOOL, "duration": NUMBER}
EVENTS: dict[str, dict[str, Schema]] = {
    "run.started": {
        "user_message": shape(
            {"role": const("user"), "content": any_of(STRING, array_of(ref("Part")))}
        ),
        "runtime": RUNTIME,
    },
    "message.started": {"message": shape({"id": STRING, "role": const("assistant")})},
    "assistant.delta": {"message_id": STRING, "delta": STRING},
    "tool.progress": {"message_id": STRING, "tool_name": const("_thinking"), "delta": STRING},
    "tool.started": _TOOL,
    "tool.completed": _ENDED_TOOL,
    "tool.failed": _ENDED_TOOL,
    "approval.request": APPROVAL_REQUEST,
    "approval.responded": APPROVAL_ANSWER,
    "assistant.completed": {
        "message_id": STRING,
        "content": STRING,
        **OUTCOME,
        "failed": const(False),
        "runtime": RUNTIME,
    },
    "run.completed": {"messages": array_of(shape(MESSAGE)), "usage": USAGE, "runtime": RUNTIME},
    "error": {"message": STRING},
    "done": {},
}
_STAMP = {"session_id": STRING, "run_id": STRING, "seq": INTEGER, "ts": SECONDS}
_PLACE = "A place in the run's log: GET /v1/runs/{run_id}/events?after= goes on there."
STREAM = stream(
    *(
        frame(shape({**more, **_STAMP}), event=const(name), id_=_PLACE)
        for name, more in EVENTS.items()
    ),
)
