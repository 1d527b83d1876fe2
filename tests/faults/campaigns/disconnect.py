"""Clients that are cut at any event and go on behind the last one they saw: what they join is the stored stream."""

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from responses_app.protocol.sse import decode_frame
from tests.faults.campaigns.base import Campaign
from tests.support.checker import DONE, Seen
from tests.support.hermes_client import (
    all_run_events,
    parsed,
    run_events,
    start_run,
)
from tests.support.scripted_requests import call
from tests.support.server import Server, frames, script

CUTS = 5  # of each response
CLIENTS = 10
RUN_END = b": stream closed\n\n"


class Disconnect(Campaign):
    name = "disconnect"
    counts = "cut and resumed"
    suite = 100
    night = 5000
    leg = 500

    def round(self, wanted: int) -> int:
        cuts = [min(CUTS, wanted - begun) for begun in range(0, min(wanted, CLIENTS * CUTS), CUTS)]
        for number in cuts:
            body = {"input": self._asked()}
            dice = random.Random(self.dice.random())
            if self.dice.random() < 0.3:
                self.begin(_watch_run, self.server, body, number, dice)
            else:
                self.begin(_watch_response, self.server, self.history.client(), body, number, dice)
        self.join_clients()
        return sum(cuts)

    def _asked(self) -> str:
        words = f"write {self.dice.randrange(30, 120)} words at {self.dice.choice((50, 200, 1000))} words per second"
        tool = script({"think": "hm "}, {"say": "a b c "}, call("effect", text=f"once {self.next_name()}", secs=0.2))
        return self.dice.choice((words, words, tool))


def _watch_response(server: Server, seen: Seen, body: dict[str, Any], cuts: int, dice: random.Random) -> None:
    with (
        server.http() as client,
        client.stream("POST", "/v1/responses", json={**body, "stream": True}) as answer,
    ):
        _note(seen, frames(answer), dice.randrange(1, 12), dice)
    for cut in range(1, cuts + 1):
        last = str(decode_frame(seen.events[-1])["sequence_number"])
        by_header = dice.random() < 0.5
        headers = {"Last-Event-ID": last} if by_header else {}
        params = {"stream": "true"} | ({} if by_header else {"starting_after": last})
        path = f"/v1/responses/{seen.response_id}"
        with server.http() as client, client.stream("GET", path, params=params, headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            _note(seen, frames(answer), None if cut == cuts else dice.randrange(1, 40), dice)
    assert seen.frames[-1] == DONE


def _note(seen: Seen, received: Iterator[bytes], count: int | None, dice: random.Random) -> None:
    """Without a count, to the end."""
    for frame in islice(received, count):
        seen.note(frame)
    if count is not None:
        _forget_the_end(seen.frames, DONE, dice)


def _forget_the_end(seen: list[bytes], end: bytes, dice: random.Random) -> None:
    """Who has read all of it is cut somewhere before, and reads that again."""
    if seen[-1] == end:
        del seen[dice.randrange(1, len(seen)) :]


def _watch_run(server: Server, body: dict[str, Any], cuts: int, dice: random.Random) -> None:
    run_id = start_run(server, body)
    seen: list[bytes] = []
    for cut in range(cuts + 1):
        headers = {"Last-Event-ID": str(parsed(seen[-1])[0])} if seen else {}
        with run_events(server, run_id, headers=headers) as received:
            event_data = (frame for frame in received if frame != b": keepalive\n\n")
            seen += islice(event_data, None if cut == cuts else dice.randrange(1, 30))
        if cut < cuts:
            _forget_the_end(seen, RUN_END, dice)
    assert seen == all_run_events(server, run_id), run_id
