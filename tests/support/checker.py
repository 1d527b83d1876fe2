"""The checker of every fault test: what clients remember, against what the public API returns afterwards.

Seven properties: what was seen is stored, and equal; sequence numbers are dense; there is one terminal event; the
deltas are the final text; nothing hangs; an unsafe tool ran at most once; one run per idempotency key.
"""

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx

from responses_app.protocol.events import Event
from responses_app.protocol.response_object import json_body
from responses_app.protocol.snapshot import fold
from tests.support.server import (
    TERMINAL,
    Server,
    created_id,
    events,
    eventually,
    frames,
    text,
)

TERMINAL_EVENTS = ("response.completed", "response.failed", "response.incomplete")
STUCK_SECS = 45.0  # lease and sweep at their defaults, with room for a slow machine
DONE = b"data: [DONE]\n\n"


class Api(Protocol):
    """What the checker asks of a server: its public API, as tests/support/server.py wraps it."""

    def replay(self, response_id: str) -> list[bytes]: ...
    def body(self, response_id: str) -> dict[str, Any]: ...


# -- one response -----------------------------------------------------------------------
def check_log(server: Api, response_id: str) -> None:
    """An ended response: dense, one end, and its snapshot is what its events add up to."""
    received = server.replay(response_id)
    assert received[-1] == DONE
    found = events(received)
    check_order(found)
    assert found[-1]["type"] in TERMINAL_EVENTS
    body = server.body(response_id)
    assert json_body(fold(found)) == body
    assert json_body(fold(found[:-1]))["output"] == body["output"]
    deltas = "".join(event["delta"] for event in found if event["type"] == "response.output_text.delta")
    assert deltas == text(body)
    added = [event["output_index"] for event in found if event["type"] == "response.output_item.added"]
    done = [event["output_index"] for event in found if event["type"] == "response.output_item.done"]
    assert added == list(range(len(body["output"])))
    assert sorted(done) == added


def check_order(found: list[Event]) -> None:
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    kinds = [event["type"] for event in found]
    assert kinds.count("response.created") == 1
    assert sum(kind in TERMINAL_EVENTS for kind in kinds) <= 1
    assert not any(kind in TERMINAL_EVENTS for kind in kinds[:-1])


# -- what clients remember --------------------------------------------------------------
@dataclass
class Seen:
    """What one client received of one request, in order; ``key`` is its Idempotency-Key."""

    key: str | None = None
    frames: list[bytes] = field(default_factory=list)
    response_id: str | None = None
    cut: Exception | None = None
    asked: str = ""
    refusal: str = ""

    def note(self, frame: bytes) -> None:
        if self.response_id is None and frame.startswith(b"event: response.created"):
            self.response_id = created_id(frame)
        self.frames.append(frame)

    @property
    def events(self) -> list[bytes]:
        return [frame for frame in self.frames if not frame.startswith(b":")]

    def read(self, server: Server, body: dict[str, Any]) -> None:
        """Ask for a stream and read it to its end, or to where it is cut."""
        self._ask(server, {"stream": True, **body}, self._read_frames)

    def post(self, server: Server, body: dict[str, Any]) -> None:
        """Ask for a response in the background."""
        self._ask(server, {"background": True, **body}, self._read_body)

    def _ask(self, server: Server, body: dict[str, Any], read: Callable[[httpx.Response], None]) -> None:
        self.asked = str(body["input"])
        headers = {} if self.key is None else {"Idempotency-Key": self.key}
        try:
            with (
                server.http() as client,
                client.stream("POST", "/v1/responses", json=body, headers=headers) as answer,
            ):
                if answer.status_code == 200:
                    read(answer)
                else:
                    self.refusal = f"{answer.status_code} {answer.read().decode()}"
        except httpx.TransportError as error:
            self.cut = error

    def _read_frames(self, answer: httpx.Response) -> None:
        for frame in frames(answer):
            self.note(frame)

    def _read_body(self, answer: httpx.Response) -> None:
        self.response_id = json.loads(answer.read())["id"]


class History:
    """All that the clients of one test saw; threads may add to it."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._lock = threading.Lock()

    def client(self, key: str | None = None) -> Seen:
        with self._lock:
            self.seen.append(Seen(key))
            return self.seen[-1]

    def note(self, response_id: str, key: str | None = None) -> None:
        """Of a request that was not streamed: its answer named the response."""
        self.client(key).response_id = response_id

    def response_ids(self) -> set[str]:
        return {seen.response_id for seen in self.seen if seen.response_id is not None}


def check_seen(server: Api, history: History) -> None:
    """Whatever a client received is stored, in the same order and byte by byte."""
    for seen in history.seen:
        assert not seen.refusal or seen.refusal.startswith("503 "), seen.refusal
        if seen.response_id is not None and seen.frames:
            assert server.replay(seen.response_id)[: len(seen.events)] == seen.events, seen.response_id


def check_keys(history: History) -> None:
    runs: dict[str, set[str]] = {}
    for seen in history.seen:
        if seen.key is not None and seen.response_id is not None:
            runs.setdefault(seen.key, set()).add(seen.response_id)
    twice = {key: ids for key, ids in runs.items() if len(ids) > 1}
    assert not twice, twice


def check_upstream_runs(server: Server, history: History) -> None:
    """What was asked under a key is stored once, and no process began it twice with the model."""
    keyed = {seen.asked for seen in history.seen if seen.key is not None}
    if not keyed:
        return
    with server.http() as client:
        questions = [first_question(client, body["id"]) for body in list(listed(server))]
    stored = Counter(question for question in questions if question in keyed)
    begun = Counter((call["texts"][-1], call["pid"]) for call in server.model_calls("") if call["event"] == "started")
    twice = {asked: count for asked, count in stored.items() if count > 1}
    twice |= {asked: count for (asked, _), count in begun.items() if asked in keyed and count > 1}
    assert not twice, twice


def first_question(client: httpx.Client, response_id: str) -> str:
    items = client.get(f"/v1/responses/{response_id}/input_items", params={"order": "asc"}).json()["data"]
    return str(items[0]["content"][0]["text"])


def check_effects(traces: Iterable[str], safe_prefix: str = "safe") -> None:
    """Each call of a test names its own trace; only a tool that may run again leaves the same twice."""
    twice = {trace: count for trace, count in Counter(traces).items() if count > 1}
    unsafe = {trace: count for trace, count in twice.items() if not trace.startswith(safe_prefix)}
    assert not unsafe, unsafe


# -- a whole server ---------------------------------------------------------------------
def traces(server: Server) -> list[str]:
    path = server.home / "effects.txt"
    return path.read_text().splitlines() if path.exists() else []


def listed(server: Server) -> Iterator[dict[str, Any]]:
    after: dict[str, str] = {}
    with server.http() as client:
        while True:
            page = client.get("/v1/responses", params={"limit": "100", **after}).json()
            yield from page["data"]
            if not page["has_more"]:
                return
            after = {"after": page["last_id"]}


def open_responses(server: Server) -> list[str]:
    return [body["id"] for body in listed(server) if body["status"] not in TERMINAL]


def waits_for_consent(server: Server, response_id: str) -> bool:
    with server.http() as client:
        return bool(client.get(f"/v1/responses/{response_id}/approval").json()["pending"])


def open_ids(server: Server) -> list[str]:
    """What neither has ended nor waits for a person."""
    return [response_id for response_id in open_responses(server) if not waits_for_consent(server, response_id)]


def check_every_log(server: Server, at_most: int | None = None) -> int:
    """Every response that has ended on a server, or so many of them, keep the invariants; says how many there were."""
    ended = [body["id"] for body in listed(server) if body["status"] in TERMINAL]
    for response_id in ended if at_most is None else random.sample(ended, min(at_most, len(ended))):
        check_log(server, response_id)
    return len(ended)


def check_after_fault(server: Server) -> None:
    """What every test of a fault ends with: the work goes on to its end, and nothing that its clients saw is lost."""
    if not server.is_running:
        server.start()
    server.open_gate()
    check_all(server, witnesses(server))


def check_witnessed(server: Server) -> None:
    """The same where others use the server too: what the clients of one test saw."""
    history = witnesses(server)
    for response_id in history.response_ids():
        server.ended(response_id)
        check_log(server, response_id)
    check_seen(server, history)


def witnesses(server: Server) -> History:
    history = History()
    for received in server.witnessed:
        client = history.client()
        for frame in received:
            client.note(frame)
    return history


def check_all(server: Server, history: History, stuck_secs: float = STUCK_SECS) -> int:
    """All seven, after the fault is over; says how many responses were checked."""
    eventually(lambda: not open_ids(server), stuck_secs, "the end of every response")
    assert history.response_ids() <= {body["id"] for body in listed(server)}
    check_seen(server, history)
    check_keys(history)
    check_upstream_runs(server, history)
    check_effects(traces(server))
    return check_every_log(server)
