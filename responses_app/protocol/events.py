"""Stream events and their names.

A public event has a type of OpenAI's and a ``sequence_number``. An internal event has a
``hermes.`` type and only a log position: an OpenAI stream never carries one.
"""

from typing import Any, Required, TypedDict

from responses_app.protocol.items import Annotation, ContentPart, Item, TokenLogprob
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import Status


class Event(TypedDict, total=False):
    """Every field of every event that this server writes; which ones, its type decides."""

    type: Required[str]
    sequence_number: int
    response: ResponseBody
    # -- an item and its parts
    output_index: int | Any  # null in TOOL_CALLED of a call that the output hides
    item: Item
    item_id: str
    content_index: int
    summary_index: int
    part: ContentPart
    delta: str
    text: str
    logprobs: list[TokenLogprob]
    annotation: Annotation
    annotation_index: int
    refusal: str
    name: str
    arguments: str
    input: str
    # -- internal events
    call_id: str
    attempt: int
    dropped_items: int
    kept_items: int
    reason: str
    message: str
    input_tokens: int
    usage: dict[str, int]
    upstream_ids: list[str]
    upstream: str
    upstream_id: str
    cursor: int
    status: str
    duration_ms: int
    expires_at: int
    approver: str
    client_choices: list[str]
    decision: str
    provider: str
    state: dict[str, Any]


# -- the response -----------------------------------------------------------------------
CREATED = "response.created"
QUEUED = "response.queued"
IN_PROGRESS = "response.in_progress"
COMPLETED = "response.completed"
FAILED = "response.failed"
INCOMPLETE = "response.incomplete"
TERMINAL_TYPES = frozenset({COMPLETED, FAILED, INCOMPLETE})
LIFECYCLE_TYPES = TERMINAL_TYPES | {CREATED, QUEUED, IN_PROGRESS}
TERMINAL_EVENT_OF = {
    Status.COMPLETED: COMPLETED,
    Status.FAILED: FAILED,
    Status.INCOMPLETE: INCOMPLETE,
    Status.CANCELLED: INCOMPLETE,  # OpenAI has no response.cancelled; the response has the status
}

# -- items and their parts --------------------------------------------------------------
ITEM_ADDED = "response.output_item.added"
ITEM_DONE = "response.output_item.done"
PART_ADDED = "response.content_part.added"
PART_DONE = "response.content_part.done"
TEXT_DELTA = "response.output_text.delta"
TEXT_DONE = "response.output_text.done"
ANNOTATION_ADDED = "response.output_text.annotation.added"
REFUSAL_DELTA = "response.refusal.delta"
REFUSAL_DONE = "response.refusal.done"
SUMMARY_PART_ADDED = "response.reasoning_summary_part.added"
SUMMARY_PART_DONE = "response.reasoning_summary_part.done"
SUMMARY_DELTA = "response.reasoning_summary_text.delta"
SUMMARY_DONE = "response.reasoning_summary_text.done"
REASONING_DELTA = "response.reasoning_text.delta"
REASONING_DONE = "response.reasoning_text.done"
ARGUMENTS_DELTA = "response.function_call_arguments.delta"
ARGUMENTS_DONE = "response.function_call_arguments.done"
CUSTOM_INPUT_DELTA = "response.custom_tool_call_input.delta"
CUSTOM_INPUT_DONE = "response.custom_tool_call_input.done"
MCP_CALL_IN_PROGRESS = "response.mcp_call.in_progress"
MCP_ARGUMENTS_DELTA = "response.mcp_call_arguments.delta"
MCP_ARGUMENTS_DONE = "response.mcp_call_arguments.done"
MCP_CALL_COMPLETED = "response.mcp_call.completed"
MCP_CALL_FAILED = "response.mcp_call.failed"
COMPACTING = "response.compaction.compacting"
ARGUMENTS_DELTA_OF = {
    "function_call": ARGUMENTS_DELTA,
    "custom_tool_call": CUSTOM_INPUT_DELTA,
    "mcp_call": MCP_ARGUMENTS_DELTA,
}

# -- only upstreams send this -----------------------------------------------------------
OPEN_REASONING_DELTA = "response.reasoning.delta"  # the name in Open Responses

# -- internal events --------------------------------------------------------------------
INTERNAL_PREFIX = "hermes."
ATTEMPT_STARTED = "hermes.attempt.started"
MODEL_STARTED = "hermes.model.started"  # its first output of a request; with the cost of the input
MODEL_FINISHED = "hermes.model.finished"
USAGE_ESTIMATED = "hermes.usage.estimated"  # stored with the terminal event
PROTOCOL_DEVIATION = "hermes.quirk"
UPSTREAM_POSITION = "hermes.upstream.position"  # of an answer that runs at its upstream by itself
UPSTREAM_ABANDONED = "hermes.upstream.abandoned"
CONTEXT_COMPACTED = "hermes.context.compacted"
CONTEXT_TRUNCATED = "hermes.context.truncated"
TOOL_NAMED = "hermes.tool.named"  # the model has begun to write the call of a server's tool
# Beside an item: what its provider needs back with it. The output never has it.
ITEM_STATE = "hermes.item.state"
TOOL_CALLED = "hermes.tool.called"  # the call of a server's tool is whole: it may run now
TOOL_STARTED = "hermes.tool.started"
TOOL_OUTPUT = "hermes.tool.progress"  # what a running tool has printed; the log keeps this name
TOOL_FINISHED = "hermes.tool.finished"
APPROVAL_REQUESTED = "hermes.approval.requested"
APPROVAL_RESOLVED = "hermes.approval.resolved"

# -- frames of our own in chat streams, which no log stores ------------------------------
# Approvals have their own names: to chat frontends, a progress whose status is not "running"
# is the end of the call.
CHAT_TOOL_PROGRESS = "hermes.tool.progress"
CHAT_APPROVAL_REQUEST = "hermes.approval.request"
CHAT_APPROVAL_RESPONDED = "hermes.approval.responded"

# -- frames of a WebSocket beside the events ---------------------------------------------
CREATE = "response.create"
STEER = "response.steer"
STEER_FAILED = "response.steer.failed"


def is_internal(event: Event) -> bool:
    return str(event["type"]).startswith(INTERNAL_PREFIX)
