"""Find a run for its owner, and show it."""

from typing import Any

from gateway_app.api.runs.renderers import RunEvents, ended_event
from gateway_app.api.runs.statuses import runs_of
from responses_app.api.approvals import shown_call
from responses_app.eventlog import Segment
from responses_app.eventlog.snapshots import BodyFold, FoldCache
from responses_app.models import Response
from responses_app.protocol.errors import RunNotFound
from responses_app.protocol.events import Event
from responses_app.protocol.ids import response_id_of, run_id_of
from responses_app.services.history.transcript import text_of_output
from responses_app.services.lifecycle.approvals import Decider, waiting_calls


def find_run(owner_id: int, run_id: str) -> Response:
    """The owner's run; a response that was made through another door is none."""
    response_id = response_id_of(run_id) if run_id.isprintable() else None
    row = runs_of(owner_id).filter(pk=response_id).first() if response_id is not None else None
    if row is None:
        raise RunNotFound(run_id)
    return row


def run_object(row: Response) -> dict[str, Any]:
    """What the row knows; the rest of a run that goes on is in its log."""
    shown = {
        "object": "hermes.run",
        "id": run_id_of(row.pk),
        "run_id": run_id_of(row.pk),
        "response_id": row.pk,
        "status": row.run_status,  # type: ignore[attr-defined]
        "created_at": row.created_at.timestamp(),
        "updated_at": (row.finished_at or row.started_at or row.created_at).timestamp(),
        "session_id": row.session.public_id,
        "model": row.model,
    }
    if row.is_open:
        return shown
    details = {"reason": row.incomplete_reason} if row.incomplete_reason else None
    body = {
        "status": row.status,
        "output": row.output or [],
        "usage": row.usage,
        "error": row.error,
    }
    ended = ended_event({**body, "incomplete_details": details})
    return {**shown, "last_event": ended.pop("event"), **ended}


class RunFold(BodyFold):
    """What the log of a run that goes on adds to its row."""

    def __init__(self) -> None:
        super().__init__()
        self._events = RunEvents()
        self._last_event: str | None = None
        self._updated_at = 0.0

    def add(self, segment: Segment) -> int:
        self._updated_at = segment.committed_at
        return super().add(segment)

    def apply(self, event: Event) -> None:
        super().apply(event)
        shown = self._events.read(event)
        if shown is not None:
            self._last_event = shown["event"]

    def live(self) -> dict[str, Any]:
        live: dict[str, Any] = {
            "updated_at": self._updated_at,
            "output": text_of_output(self.body()["output"]),
        }
        if self._last_event is not None:
            live["last_event"] = self._last_event
        return live


_folds: FoldCache[RunFold] = FoldCache(RunFold)


def live_run_object(row: Response, decider: Decider) -> dict[str, Any]:
    """With what the log of a run that goes on tells: what it said so far, and what it waits for."""
    shown = run_object(row)
    if not row.is_open:
        return shown
    live = _folds.read(row.pk, RunFold.live)
    if live is None:  # deleted in this moment
        raise RunNotFound(run_id_of(row.pk))
    waiting = [shown_call(event, decider) for event in waiting_calls(row.pk)]
    return {
        **shown,
        **live,
        **({"approval": {**waiting[0], "pending": waiting}} if waiting else {}),
    }
