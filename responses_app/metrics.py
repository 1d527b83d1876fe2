"""Counters and timers for ``/metrics``, and the last outcome of each upstream for health."""

import time
from dataclasses import dataclass
from functools import cache
from types import TracebackType

from prometheus_client import Counter, Gauge, Histogram

# From a commit on a fast disk to a turn that waits for a slow model.
COMMIT_SECS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
WORK_SECS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600)

streams_open = Gauge("hermes_streams_open", "Readers connected to a log, over HTTP and WebSockets.")
events_appended = Counter("hermes_events_appended", "Events committed to the log.")
events_delivered = Counter("hermes_events_delivered", "Events of the log sent to readers.")
commit_seconds = Histogram(
    "hermes_commit_seconds", "Transactions of the writer.", buckets=COMMIT_SECS
)
log_lag_seconds = Gauge(
    "hermes_log_lag_seconds", "Age of the oldest write that is not committed yet."
)
log_pending_bytes = Gauge("hermes_log_pending_bytes", "Bytes of events that are not committed yet.")
queue_age_seconds = Gauge(
    "hermes_queue_age_seconds", "Age of the oldest response that no process has taken."
)
responses_open = Gauge(
    "hermes_responses_open", "Responses that have not ended, by what they do.", ["state"]
)
responses_ended = Counter(
    "hermes_responses", "Responses this process ended, by status.", ["status"]
)
tokens_spent = Counter(
    "hermes_tokens",
    "Tokens of responses this process ended, as the upstream counted them or estimated.",
    ["direction", "source"],
)
upstream_first_event_seconds = Histogram(
    "hermes_upstream_first_event_seconds",
    "From a request to the model's server to its first event.",
    ["provider", "model"],
    buckets=WORK_SECS,
)
upstream_seconds = Histogram(
    "hermes_upstream_seconds",
    "Whole requests to the model's server.",
    ["provider", "model"],
    buckets=WORK_SECS,
)
upstream_errors = Counter(
    "hermes_upstream_errors",
    "Requests to the model's server that failed, by code.",
    ["provider", "model", "code"],
)
tool_seconds = Histogram(
    "hermes_tool_seconds", "Calls of tools.", ["tool", "status"], buckets=WORK_SECS
)
platform_messages = Counter(
    "hermes_platform_messages",
    "Messages of messaging platforms that this process stored or sent.",
    ["platform", "direction", "outcome"],
)
platform_queue = Gauge(
    "hermes_platform_queue",
    "Messages of messaging platforms that wait, and dead letters.",
    ["platform", "queue"],
)


@dataclass(frozen=True)
class Outcome:
    """How the last request to an upstream ended; an empty code means success."""

    at: float
    code: str = ""


last_outcomes: dict[tuple[str, str], Outcome] = {}  # by provider and model


@cache
def _of_upstream(seconds: Histogram, provider: str, model: str) -> Histogram:
    """``labels`` takes a lock; the models of a server are few."""
    return seconds.labels(provider, model)


class UpstreamRequest:
    """One request, timed from its start. A caller that stops reading it has not met an error."""

    def __init__(self, provider: str, model: str) -> None:
        self._provider = provider
        self._model = model
        self._began = time.monotonic()
        self.has_event = False

    def note_event(self) -> None:
        if not self.has_event:
            self.has_event = True
            seconds = _of_upstream(upstream_first_event_seconds, self._provider, self._model)
            seconds.observe(time.monotonic() - self._began)

    def __enter__(self) -> "UpstreamRequest":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        seconds = _of_upstream(upstream_seconds, self._provider, self._model)
        seconds.observe(time.monotonic() - self._began)
        upstream = (self._provider, self._model)
        if isinstance(error, Exception):
            code = str(getattr(error, "code", "server_error"))
            upstream_errors.labels(self._provider, self._model, code).inc()
            last_outcomes[upstream] = Outcome(time.time(), code)
        elif self.has_event:
            last_outcomes[upstream] = Outcome(time.time())
