"""The events of a response's stream."""

from responses_app.protocol import events
from responses_app.requests.json_schema import (
    INTEGER,
    OPEN_OBJECT,
    STRING,
    Schema,
    array_of,
    enum,
    ref,
    shape,
    union,
)
from responses_app.schema.builders import (
    DONE_FRAME,
    frame,
    stream,
)
from responses_app.schema.items import SUMMARY_PART

_AT = {"item_id": STRING, "output_index": INTEGER}
_CONTENT = {**_AT, "content_index": INTEGER}
_SUMMARY = {**_AT, "summary_index": INTEGER}
_DELTA = {"delta": STRING}
_WHOLE_ITEM = {"output_index": INTEGER, "item": ref("Item")}
_LOGPROBS = {"logprobs": array_of(ref("Logprob"))}

EVENTS: dict[str, dict[str, Schema]] = {
    **{kind: {"response": ref("Response")} for kind in sorted(events.LIFECYCLE_TYPES)},
    "response.output_item.added": _WHOLE_ITEM,
    "response.output_item.done": _WHOLE_ITEM,
    "response.content_part.added": {**_CONTENT, "part": ref("Part")},
    "response.content_part.done": {**_CONTENT, "part": ref("Part")},
    "response.output_text.delta": {**_CONTENT, **_DELTA, **_LOGPROBS},
    "response.output_text.done": {**_CONTENT, "text": STRING, **_LOGPROBS},
    "response.output_text.annotation.added": {
        **_CONTENT,
        "annotation_index": INTEGER,
        "annotation": OPEN_OBJECT,
    },
    "response.refusal.delta": {**_CONTENT, **_DELTA},
    "response.refusal.done": {**_CONTENT, "refusal": STRING},
    "response.reasoning_summary_part.added": {**_SUMMARY, "part": SUMMARY_PART},
    "response.reasoning_summary_part.done": {**_SUMMARY, "part": SUMMARY_PART},
    "response.reasoning_summary_text.delta": {**_SUMMARY, **_DELTA},
    "response.reasoning_summary_text.done": {**_SUMMARY, "text": STRING},
    "response.function_call_arguments.delta": {**_AT, **_DELTA},
    "response.function_call_arguments.done": {**_AT, "name": STRING, "arguments": STRING},
    "response.custom_tool_call_input.delta": {**_AT, **_DELTA},
    "response.custom_tool_call_input.done": {**_AT, "input": STRING},
    "response.mcp_call.in_progress": _AT,
    "response.mcp_call_arguments.delta": {**_AT, **_DELTA},
    "response.mcp_call_arguments.done": {**_AT, "arguments": STRING},
    "response.mcp_call.completed": _AT,
    "response.mcp_call.failed": _AT,
    "response.compaction.compacting": _AT,
}
SCHEMAS: dict[str, Schema] = {
    "ResponseEvent": union(
        "type",
        {kind: shape({"sequence_number": INTEGER, **fields}) for kind, fields in EVENTS.items()},
        "sequence_number counts from 0 without gaps, and is the same in every replay.",
    )
}
STREAM = stream(frame(ref("ResponseEvent"), event=enum(EVENTS)), DONE_FRAME)
NUMBERED_STREAM = stream(
    frame(
        ref("ResponseEvent"),
        event=enum(EVENTS),
        id_="The sequence_number, where Accept asks for an event stream.",
    ),
    DONE_FRAME,
)
