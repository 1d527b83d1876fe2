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
    "tool_call_id": nullable(STRING),
    "tool_name": nullable(STRING),
    "reasoning": nullable(STRING),
    "reasoning_content": nullable(STRING),
    "display_kind": nullable(string("The type of an item that is no message.")),
}
RUNTIME = shape({"model": STRING})
OUTCOME: dict[str, Schema] = dict.fromkeys(("completed", "partial", "interrupted"), BOOLEAN)
USAGE = nullable(ref("Usage"))
_TOOL: dict[str, Schema] = {
    "message_id": STRING,
    "tool_name": STRING,
    "tool_call_id": STRING,
    "preview": STRING,
    "args": ANYTHING,
}
_ENDED_TOOL = _TOOL | {"duration": NUMBER}
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
    "assistant.completed": OUTCOME
    | {"message_id": STRING, "content": STRING, "failed": const(False), "runtime": RUNTIME},
    "run.completed": {"messages": array_of(shape(MESSAGE)), "usage": USAGE, "runtime": RUNTIME},
    "error": {"message": STRING},
    "done": {},
}
_STAMP: dict[str, Schema] = {
    "session_id": STRING,
    "run_id": STRING,
    "seq": INTEGER,
    "ts": SECONDS,
}
_POSITION = "A position in the run's log: GET /v1/runs/{run_id}/events?after= goes on there."


def _frame(name: str) -> Schema:
    return frame(shape(EVENTS[name] | _STAMP), event=const(name), id_=_POSITION)


STREAM = stream(*[_frame(name) for name in EVENTS])
