"""Runs as JSON bodies show them."""

from typing import Any

from gateway_app.api.runs.renderers import RunEventRenderer, ended_event
from gateway_app.api.runs.statuses import runs_of
from responses_app.api.approvals import call_payload
from responses_app.eventlog import Segment
from responses_app.eventlog.snapshots import BodyFold, FoldCache
from responses_app.models import Response
from responses_app.protocol.errors import RunNotFound
from responses_app.protocol.events import Event
from responses_app.protocol.ids import response_id_of, run_id_of
from responses_app.services.history.transcript import text_of_output
from responses_app.services.lifecycle.approvals import Decider, waiting_calls


def find_run(owner_id: int, run_id: str) -> Response:
    """The owner's run; a response that another endpoint made is no run."""
    response_id = response_id_of(run_id)
    if response_id is None or not response_id.isprintable():
        raise RunNotFound(run_id)
    row = runs_of(owner_id).filter(pk=response_id).first()
    if row is None:
        raise RunNotFound(run_id)
    return row


def run_payload(row: Response) -> dict[str, Any]:
    """What the row holds; the rest of a running run is in its log."""
    updated_at = row.finished_at or row.started_at or row.created_at
    payload = {
        "object": "hermes.run",
        "id": run_id_of(row.pk),
        "run_id": run_id_of(row.pk),
        "response_id": row.pk,
        "status": row.run_status,  # type: ignore[attr-defined]
        "created_at": row.created_at.timestamp(),
        "updated_at": updated_at.timestamp(),
        "session_id": row.session.public_id,
        "model": row.model,
    }
    if row.is_open:
        return payload
    details = None
    if row.incomplete_reason:
        details = {"reason": row.incomplete_reason}
    ended = ended_event(
        {
            "status": row.status,
            "output": row.output or [],
            "usage": row.usage,
            "error": row.error,
            "incomplete_details": details,
        }
    )
    payload["last_event"] = ended.pop("event")
    return payload | ended


class RunFold(BodyFold):
    """What the log of a running run adds to its row."""

    def __init__(self) -> None:
        super().__init__()
        self._renderer = RunEventRenderer()
        self._last_event: str | None = None
        self._updated_at = 0.0

    def add(self, segment: Segment) -> int:
        self._updated_at = segment.committed_at
        return super().add(segment)

    def apply(self, event: Event) -> None:
        super().apply(event)
        rendered = self._renderer.render(event)
        if rendered is not None:
            self._last_event = rendered["event"]

    def live(self) -> dict[str, Any]:
        live: dict[str, Any] = {
            "updated_at": self._updated_at,
            "output": text_of_output(self.body()["output"]),
        }
        if self._last_event is not None:
            live["last_event"] = self._last_event
        return live


_folds: FoldCache[RunFold] = FoldCache(RunFold)


def live_run_payload(row: Response, decider: Decider) -> dict[str, Any]:
    """Of a running run, also the text so far and the calls that wait for an approval."""
    payload = run_payload(row)
    if not row.is_open:
        return payload
    live = _folds.read(row.pk, RunFold.live)
    if live is None:  # deleted meanwhile
        raise RunNotFound(run_id_of(row.pk))
    payload |= live
    waiting = [call_payload(event, decider) for event in waiting_calls(row.pk)]
    if waiting:
        payload["approval"] = waiting[0] | {"pending": waiting}
    return payload
