"""kill -9 at any moment while people write: every message is answered, and only a send in flight may be repeated."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import httpx

from tests.faults.campaigns.base import Campaign
from tests.support.checker import STUCK_SECS
from tests.support.platforms import deliver, lines, message
from tests.support.server import eventually

CHATS = 4
MESSAGES = 6  # in each round
MAX_LIFE_SECS = 0.8
REPEATS = 3


class Platform(Campaign):
    name = "platform"
    counts = "kill -9 while people write"
    suite = 5
    night = 200
    env = {"HERMES_MAX_ATTEMPTS": "100", "TEST_FAKE_PLATFORM": "1", "TEST_SENDING_SECS": "1"}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._unacknowledged: list[dict[str, Any]] = []
        self._written: dict[str, str] = {}  # the chat of each message
        self._lock = threading.Lock()
        self.repeated = 0

    def round(self, wanted: int) -> int:
        for _ in range(MESSAGES):
            name = f"m{self.next_name()}"
            chat = f"chat{self.dice.randrange(CHATS)}"
            words = f"For number {name}, write {self.dice.randrange(5, 60)} words at 200 words per second"
            self._written[name] = chat
            self._unacknowledged.append(message(name, words, chat))
        sending = list(self._unacknowledged)
        self.dice.shuffle(sending)  # a platform keeps no order
        for given in sending:
            self.begin(self._deliver, given)
        time.sleep(self.dice.uniform(0, MAX_LIFE_SECS))  # the moment of death is the variable under test
        self.server.kill()
        self.join_clients()
        self.server.start()
        return 1

    def _deliver(self, given: dict[str, Any]) -> None:
        """As a platform does: again and again, until it gets a 200, and sometimes once more."""
        for _ in range(REPEATS):
            with suppress(httpx.TransportError):
                if deliver(self.server, given).status_code == 200:
                    with self._lock:
                        self._unacknowledged = [one for one in self._unacknowledged if one["id"] != given["id"]]

    def settle(self) -> None:
        for given in list(self._unacknowledged):
            self._deliver(given)
        assert not self._unacknowledged
        eventually(self._all_sent, STUCK_SECS, "the last reply")

    def _all_sent(self) -> bool:
        unsent = "SELECT count(*) FROM responses_app_outboxmessage WHERE status <> 'sent'"
        waiting = "SELECT count(*) FROM responses_app_inboxmessage WHERE status <> 'admitted'"
        open_turns = "SELECT count(*) FROM responses_app_response WHERE finished_at IS NULL"
        return all(self.server.query(sql) == [(0,)] for sql in (unsent, waiting, open_turns))

    def check(self) -> None:
        """One turn for each message, one reply for each turn; a repeat has the key of the first."""
        turns = dict(self.server.query("SELECT message_id, response_id FROM responses_app_inboxmessage"))
        assert turns.keys() == self._written.keys()
        assert len(set(turns.values())) == len(turns)
        replies = Counter(line["key"].split(":")[0] for line in lines(self.server) if "sent" in line)
        assert replies.keys() == set(turns.values())
        self.repeated = sum(replies.values()) - len(replies)
        assert self.repeated <= CHATS * self.faults, replies  # one for each chat that a kill can meet in mid-send

    @classmethod
    def remark(cls, legs: Sequence[Self]) -> str:
        written = sum(len(leg._written) for leg in legs)
        return (
            f"{written} messages, {sum(leg.repeated for leg in legs)} replies sent twice: killed before the note of it"
        )
