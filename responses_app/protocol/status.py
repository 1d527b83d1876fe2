"""The states of a response and the moves between them."""

from enum import StrEnum


class Status(StrEnum):
    QUEUED = "queued"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"


OPEN = (Status.QUEUED, Status.IN_PROGRESS)
TERMINAL = (Status.COMPLETED, Status.FAILED, Status.INCOMPLETE, Status.CANCELLED)

# From where each state may be reached; a terminal state is the origin of nothing.
LEGAL_ORIGINS: dict[Status, tuple[Status, ...]] = {
    Status.QUEUED: (),
    Status.IN_PROGRESS: (Status.QUEUED,),
    Status.COMPLETED: (Status.IN_PROGRESS,),
    Status.FAILED: OPEN,
    Status.INCOMPLETE: OPEN,
    Status.CANCELLED: OPEN,
}


class OnDisconnect(StrEnum):
    """What the end of the creating connection does to the work."""

    CONTINUE = "continue"
    CANCEL = "cancel"


class IncompleteReason(StrEnum):
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    CONTENT_FILTER = "content_filter"
    MAX_TOOL_CALLS = "max_tool_calls"
    MAX_ITERATIONS = "max_iterations"
    TIME_LIMIT = "time_limit"
    UPSTREAM_CUT = "upstream_cut"
    TOOL_CALL_DROPPED = "tool_call_dropped"
    SERVER_INTERRUPTED = "server_interrupted"


# The output ends at a limit that the client, the operator or the model's provider set: it is
# shorter, not broken. Any other reason is a failure for the APIs that have no word for it.
LIMITS = (
    IncompleteReason.MAX_OUTPUT_TOKENS,
    IncompleteReason.MAX_TOOL_CALLS,
    IncompleteReason.MAX_ITERATIONS,
    IncompleteReason.CONTENT_FILTER,
)
