"""The scenarios: each measures one target through one API, and returns its figures."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.clocks import memory_bytes
from bench.harness import Figures, Harness
from bench.stored import logs_are_merged, segments_of, stored_bytes
from bench.targets import Serve, Started, Target

BOTH = ("chat", "responses")
PACE = 50.0  # tokens per second: a fast model
WARM_UP_REQUESTS_SECS = 1.0
TIDY_SECS = 60.0
MERGE_DELAY_SECS = 7.0  # a log is merged five seconds after its end, by the next sweep
REPLAYED_TOKENS = 9_992  # with the eight events around them: 10,000
ATTACHED_PER_SEC = 40  # readers of one stream, also on a machine that has other work
SPARSE_PACE = 1_000.0  # slow enough for about one commit per event: the most segments a log can have


@dataclass(frozen=True)
class Run:
    """One target and one API, with the length and the size that the command line asks for."""

    harness: Harness
    target: Target
    api: str
    secs: float
    count: int | None = None

    def measure(self, **job: Any) -> Figures:
        return self.harness.measure(self.target, self.api, job)

    def ask(self, **job: Any) -> dict[str, Any]:
        return self.harness.ask(self.target, self.api, job)


def warm_up(run: Run) -> None:
    """Imports, connections and compiled statements are not what is measured."""
    run.ask(do="closed_loop", clients=4, tokens=3, stream=True, secs=WARM_UP_REQUESTS_SECS)
    run.ask(do="closed_loop", clients=4, tokens=3, stream=False, secs=WARM_UP_REQUESTS_SECS)
    run.harness.wait_until_quiet(run.target)


# -- requests ---------------------------------------------------------------------------
def first_text(run: Run) -> Figures:
    figures = run.measure(do="closed_loop", clients=1, tokens=3, stream=True, secs=run.secs)
    return _per_request(figures)


def short(run: Run) -> Figures:
    figures = run.measure(do="closed_loop", clients=run.count or 10, tokens=20, stream=False, secs=run.secs)
    return _per_request(figures)


def _per_request(figures: Figures) -> Figures:
    if "cpu_secs" in figures:
        figures["cpu_ms_per_request"] = figures["cpu_secs"] * 1e3 / figures["requests"]
    return figures


# -- streams ----------------------------------------------------------------------------
def streams(run: Run) -> Figures:
    assert run.count is not None
    figures = _per_token(run.measure(do="paced", streams=run.count, pace=PACE, secs=run.secs))
    if "window_cpu_secs" not in figures:
        return figures
    figures["cpu_us_per_token_with_starts"] = figures["cpu_us_per_token"]
    figures["cpu_us_per_token"] = figures["window_cpu_secs"] * 1e6 / max(1.0, figures["window_tokens"])
    return figures


def streams_50(run: Run) -> Figures:
    return streams(replace(run, count=run.count or 50))


def streams_200(run: Run) -> Figures:
    return streams(replace(run, count=run.count or 200))


def flood_50(run: Run) -> Figures:
    return _per_token(run.measure(do="flood", streams=run.count or 50, tokens=80))


def flood_200(run: Run) -> Figures:
    return _per_token(run.measure(do="flood", streams=run.count or 200, tokens=30))


def _per_token(figures: Figures) -> Figures:
    if "cpu_secs" in figures:
        figures["cpu_us_per_token"] = figures["cpu_secs"] * 1e6 / max(1.0, figures["tokens"])
    return figures


# -- memory and rest --------------------------------------------------------------------
def memory(run: Run) -> Figures:
    """A new process, after its first requests; then live streams, each with a few tokens."""
    count = run.count or 100
    _restart(run)
    base = memory_bytes(run.target.pids)
    resident = memory_bytes(run.target.pids, "Rss")
    job = {"do": "hold", "count": count, "tokens": 75, "pace": 5.0, "marker": _first_token_marker(run.api)}
    figures = run.measure(**job)
    time.sleep(min(run.secs, 5.0))
    live = memory_bytes(run.target.pids)
    run.ask(do="release")
    figures["base_mb"] = base / 1e6
    figures["resident_mb"] = resident / 1e6
    figures["kb_per_stream"] = (live - base) / count / 1e3
    return figures


def idle(run: Run) -> Figures:
    _restart(run)
    time.sleep(MERGE_DELAY_SECS)
    return run.harness.watch(run.target, max(run.secs, 5.0))


def waiting(run: Run) -> Figures:
    """Turns of one session that wait for the first: each has a client that reads."""
    count = run.count or 2_000
    _restart(run)
    headers = f"X-Hermes-Session-Id: waiting-{time.monotonic_ns()}\r\n"
    base = memory_bytes(run.target.pids)
    first = {"do": "hold", "count": 1, "tokens": 100, "pace": 0.01, "marker": "response.created", "headers": headers}
    run.ask(**first)
    opened = run.ask(**{**first, "count": count, "marker": "response.queued"})
    time.sleep(2.0)
    live = memory_bytes(run.target.pids)
    figures = run.harness.watch(run.target, max(run.secs, 5.0))
    run.ask(do="release")
    run.target.stop()  # the turns would run one after another for hours
    run.target.start(run.harness.model_port)
    figures["kb_per_reader"] = (live - base) / count / 1e3
    figures["opened_per_sec"] = count / opened["took_secs"]
    return figures


def _restart(run: Run) -> None:
    run.target.stop()
    run.target.start(run.harness.model_port)
    warm_up(run)


def _first_token_marker(api: str) -> str:
    return "content" if api == "chat" else "response.output_text.delta"


# -- what is stored ---------------------------------------------------------------------
def replay(run: Run) -> Figures:
    assert isinstance(run.target, Serve)
    tokens = run.count or REPLAYED_TOKENS
    made = run.ask(do="produce", tokens=tokens, pace=SPARSE_PACE)
    path = f"{run.target.client['prefix']}/responses/{made['id']}?stream=true"
    segments = segments_of(run.target, made["id"])
    unmerged = run.measure(do="fetch", path=path, times=3)
    was_unmerged = segments_of(run.target, made["id"]) == segments
    wait_until_tidy(run)
    merged = run.ask(do="fetch", path=path, times=5)
    if (unmerged["events"], merged["events"]) != (made["events"], made["events"]):
        raise RuntimeError(f"A replay has {merged['events']} events, the stream had {made['events']}.")
    figures = {"events": float(made["events"]), "segments": float(segments), "merged_ms": merged["took_p50_ms"]}
    figures["foreign_share"] = unmerged["foreign_share"]
    if was_unmerged:
        figures["unmerged_ms"] = unmerged["took_p50_ms"]
    return figures


def fanout_500(run: Run) -> Figures:
    secs = max(run.secs, 4.0)
    readers = run.count or 500
    # While the readers attach, the stream has to go on.
    tokens = int(PACE * (secs + readers / ATTACHED_PER_SEC))
    return _per_token(run.measure(do="fanout", readers=readers, tokens=tokens, pace=PACE))


def storage(run: Run) -> Figures:
    """Bytes of short turns and of a long answer, after their logs are merged."""
    assert isinstance(run.target, Serve)
    wait_until_tidy(run)
    before = stored_bytes(run.target)
    short_turns = run.ask(do="closed_loop", clients=4, tokens=20, stream=True, words=True, secs=run.secs)
    tidying = run.harness.watch(run.target, MERGE_DELAY_SECS)
    wait_until_tidy(run)
    per_turn = (stored_bytes(run.target) - before) / short_turns["requests"]
    before = stored_bytes(run.target)
    tokens = run.count or 10_000
    run.ask(do="produce", tokens=tokens, pace=0.0, words=True)
    wait_until_tidy(run)
    per_token = (stored_bytes(run.target) - before - per_turn) / tokens
    return {
        "bytes_per_turn": per_turn,
        "bytes_per_token": per_token,
        "merge_cpu_ms_per_turn": tidying["cpu_share"] * MERGE_DELAY_SECS * 1e3 / short_turns["requests"],
        "foreign_share": tidying["foreign_share"],
    }


def wait_until_tidy(run: Run) -> None:
    """Until every log is merged, so that no scenario pays for the one before."""
    assert isinstance(run.target, Serve)
    deadline = time.monotonic() + TIDY_SECS
    while not logs_are_merged(run.target):
        if time.monotonic() > deadline:
            raise RuntimeError("The logs of ended responses are not merged.")
        time.sleep(0.2)


# -- the list ---------------------------------------------------------------------------
def any_target(target: Target) -> bool:
    return True


def with_process(target: Target) -> bool:
    return isinstance(target, Started)


def that_stores(target: Target) -> bool:
    return isinstance(target, Serve)


@dataclass(frozen=True)
class Scenario:
    measure: Callable[[Run], Figures]
    fits: Callable[[Target], bool] = any_target
    apis: tuple[str, ...] = BOTH
    secs: float = 5.0
    is_repeated: bool = True  # in each round; sizes differ less between rounds than times


SCENARIOS: dict[str, Scenario] = {
    "first_text": Scenario(first_text),
    "short": Scenario(short),
    "streams_50": Scenario(streams_50, secs=10.0),
    "streams_200": Scenario(streams_200, secs=10.0),
    "flood_50": Scenario(flood_50),
    "flood_200": Scenario(flood_200),
    "memory": Scenario(memory, with_process, is_repeated=False),
    "idle": Scenario(idle, with_process, ("responses",), 20.0, is_repeated=False),
    "replay": Scenario(replay, that_stores, ("responses",)),
    "fanout_500": Scenario(fanout_500, that_stores, ("responses",)),
    "waiting": Scenario(waiting, that_stores, ("responses",), 10.0, is_repeated=False),
    "storage": Scenario(storage, that_stores, ("responses",), is_repeated=False),
}
