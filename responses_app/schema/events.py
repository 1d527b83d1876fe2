"""The events of a response's stream."""

from responses_app.protocol import events
from responses_app.requests.json_schema import (
    INTEGER,
    OPEN_OBJECT,
    STRING,
    Schema,
    any_of,
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
from responses_app.schema.items import REASONING_PART, SUMMARY_PART

_AT: dict[str, Schema] = {"item_id": STRING, "output_index": INTEGER}
_CONTENT = _AT | {"content_index": INTEGER}
_SUMMARY = _AT | {"summary_index": INTEGER}
_PART = {"part": any_of(ref("Part"), REASONING_PART)}
_DELTA: dict[str, Schema] = {"delta": STRING}
_WHOLE_ITEM = {"output_index": INTEGER, "item": ref("Item")}
_LOGPROBS: dict[str, Schema] = {"logprobs": array_of(ref("Logprob"))}
_RESPONSE: dict[str, Schema] = {"response": ref("Response")}

EVENTS: dict[str, dict[str, Schema]] = dict.fromkeys(sorted(events.LIFECYCLE_TYPES), _RESPONSE)
EVENTS |= {
    events.ITEM_ADDED: _WHOLE_ITEM,
    events.ITEM_DONE: _WHOLE_ITEM,
    events.PART_ADDED: _CONTENT | _PART,
    events.PART_DONE: _CONTENT | _PART,
    events.TEXT_DELTA: _CONTENT | _DELTA | _LOGPROBS,
    events.TEXT_DONE: _CONTENT | {"text": STRING} | _LOGPROBS,
    events.ANNOTATION_ADDED: _CONTENT | {"annotation_index": INTEGER, "annotation": OPEN_OBJECT},
    events.REFUSAL_DELTA: _CONTENT | _DELTA,
    events.REFUSAL_DONE: _CONTENT | {"refusal": STRING},
    events.SUMMARY_PART_ADDED: _SUMMARY | {"part": SUMMARY_PART},
    events.SUMMARY_PART_DONE: _SUMMARY | {"part": SUMMARY_PART},
    events.SUMMARY_DELTA: _SUMMARY | _DELTA,
    events.SUMMARY_DONE: _SUMMARY | {"text": STRING},
    events.REASONING_DELTA: _CONTENT | _DELTA,
    events.REASONING_DONE: _CONTENT | {"text": STRING},
    events.ARGUMENTS_DELTA: _AT | _DELTA,
    events.ARGUMENTS_DONE: _AT | {"name": STRING, "arguments": STRING},
    events.CUSTOM_INPUT_DELTA: _AT | _DELTA,
    events.CUSTOM_INPUT_DONE: _AT | {"input": STRING},
    events.MCP_CALL_IN_PROGRESS: _AT,
    events.MCP_ARGUMENTS_DELTA: _AT | _DELTA,
    events.MCP_ARGUMENTS_DONE: _AT | {"arguments": STRING},
    events.MCP_CALL_COMPLETED: _AT,
    events.MCP_CALL_FAILED: _AT,
    events.COMPACTING: _AT,
}
_NUMBERED = {kind: shape({"sequence_number": INTEGER} | EVENTS[kind]) for kind in EVENTS}
SCHEMAS: dict[str, Schema] = {
    "ResponseEvent": union(
        "type",
        _NUMBERED,
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
