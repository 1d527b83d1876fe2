"""Reads from a log where the answer of an upstream stopped that runs on by itself."""

from gateway_app.agent.events import (
    Annotation,
    OpaqueItem,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
    UpstreamPosition,
)
from gateway_app.agent.model_call import ResumePoint
from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.items import CALLS

_DELTAS: dict[str, type] = {
    events.TEXT_DELTA: TextDelta,
    events.REFUSAL_DELTA: RefusalDelta,
    events.SUMMARY_DELTA: ReasoningDelta,
    events.REASONING_DELTA: ReasoningDelta,
}
_ENDS = (events.MODEL_FINISHED, events.UPSTREAM_ABANDONED)
# Items of any other kind come as a whole.
_BUILT_KINDS = frozenset(("message", "reasoning", "mcp_call", *CALLS))


class UpstreamLog:
    """The last position, and what the log has behind it: the upstream sends that again."""

    def __init__(self) -> None:
        self.position: UpstreamPosition | None = None
        self._received: dict[type, int] = {}
        self._has_whole_call = False

    def read(self, event: Event) -> None:
        kind = event["type"]
        if kind == events.UPSTREAM_POSITION:
            position = UpstreamPosition(event["upstream"], event["upstream_id"], event["cursor"])
            if self.position is None or self.position.response_id != position.response_id:
                self._has_whole_call = False
            self.position = position
            self._received = {}
        elif kind in _ENDS:
            self.position = None
        elif self.position is not None:
            self._count(kind, event)

    def resume_point(self) -> ResumePoint | None:
        """None behind a whole call: its output is what the model goes on from."""
        if self.position is None or self._has_whole_call:
            return None
        return ResumePoint(self.position, self._received)

    def _count(self, kind: str, event: Event) -> None:
        if kind in _DELTAS:
            self._add(_DELTAS[kind], len(event["delta"]))
        elif kind == events.ANNOTATION_ADDED:
            self._add(Annotation, 1)
        elif kind == events.TOOL_CALLED:
            self._has_whole_call = True
        elif kind == events.ITEM_STATE and "encrypted_content" in event["state"]:
            self._add(ReasoningSealed, 1)  # the client did not ask for it
        elif kind == events.ITEM_ADDED and event["item"]["type"] not in _BUILT_KINDS:
            self._add(OpaqueItem, 1)
        elif kind == events.ITEM_DONE:
            item = event["item"]
            if item["type"] == "reasoning" and item.get("encrypted_content"):
                self._add(ReasoningSealed, 1)
            elif item["type"] in CALLS and item.get("status") == "completed":
                self._has_whole_call = True

    def _add(self, kind: type, count: int) -> None:
        self._received[kind] = self._received.get(kind, 0) + count
