"""What campaigns against a cluster share: requests through any web process, one fault, and the end of every stream."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Self

from tests.faults.campaigns.cluster.faults import LEASES, Fault
from tests.faults.campaigns.kill import CLIENTS, MAX_LIFE_SECS, Kill, Tempo
from tests.support.checker import DONE, Seen
from tests.support.cluster import Cluster, redis_server
from tests.support.migrated_database import Database
from tests.support.server import Server, eventually
from tests.support.stored_rows import stored_rows

WEBS = WORKERS = 2
STUCK_SECS = 120.0  # with short leases on an overloaded machine, many turns at once take long


class ClusterCampaign(Kill):
    suite = 10
    night = 500
    tempo = Tempo(paces=(30, 60), tool_secs=3.0)  # long enough to be under way when the fault comes
    env = Kill.env | LEASES
    kinds: ClassVar[tuple[Fault, ...]] = ()

    def __init__(self, cluster: Cluster, seed: str) -> None:
        super().__init__(cluster.webs[0], seed)
        self.cluster = cluster
        self.injected: Counter[str] = Counter()
        self.taken_over = 0

    @classmethod
    @contextmanager
    def opened(cls, database: Database, home: Path, seed: str) -> Iterator[Self]:
        with redis_server() as redis:
            cluster = Cluster(database, home, redis, **cls.env)
            try:
                cls.start_members(cluster)
                yield cls(cluster, seed)
            finally:
                cluster.stop()

    @classmethod
    def start_members(cls, cluster: Cluster) -> None:
        for _ in range(WORKERS):
            cluster.worker()
        for _ in range(WEBS):
            cluster.web()

    def next_fault(self) -> Fault:
        return self.dice.choice(self.kinds)

    def round(self, wanted: int) -> int:
        new = self.ask_all()[:CLIENTS]
        eventually(lambda: not self.is_busy or any(map(_has_begun, new)), STUCK_SECS, "the first word")
        time.sleep(self.dice.uniform(0, MAX_LIFE_SECS))  # the moment of the fault is the variable under test
        fault = self.next_fault()
        self.injected[fault.__name__.replace("_", " ")] += 1
        fault(self.cluster, self.dice)
        eventually(self._all_answer, STUCK_SECS, "an answer of every web process")
        self.await_clients()
        return 1

    def await_clients(self) -> None:
        """Their calls get consent meanwhile."""
        try:
            eventually(self._all_were_read, STUCK_SECS, "the end of every stream")
        except AssertionError as error:
            error.add_note(self._what_is_open())
            raise
        self.join_clients()

    def check(self) -> None:
        """A turn that got consent has a new attempt, too, and does not count."""
        with_consent = {found for (found,) in stored_rows(self.server, "toolevent", "response_id", name="guarded")}
        for response_id, attempt in stored_rows(self.server, "response", "id", "attempt"):
            if attempt > 1 and response_id not in with_consent:
                self.taken_over += 1

    @classmethod
    def remark(cls, legs: Sequence[Self]) -> str:
        injected = sum((leg.injected for leg in legs), Counter[str]())
        kinds = [f"{count} × {name}" for name, count in sorted(injected.items())]
        taken_over = f"{sum(leg.taken_over for leg in legs)} turns continued by another attempt"
        return "; ".join([*kinds, taken_over])

    def entry(self) -> Server:
        return self.dice.choice(self.cluster.webs)

    def logs(self) -> list[str]:
        return [member.log for member in self.cluster.members]

    def _what_is_open(self) -> str:
        """The database goes away with the campaign, so a finding has its rows."""
        processes = stored_rows(self.server, "runtimeprocess", "id", "pid", "role", "state", "heartbeat_at")
        columns = ("id", "status", "attempt", "lease_owner", "lease_until", "parked_until")
        rows = stored_rows(self.server, "response", *columns, finished_at=None)
        lines = [f"process {row}" for row in processes] + [f"open {row}" for row in rows]
        for seen in self.history.seen:
            if seen.frames and seen.frames[-1] != DONE and seen.cut is None:
                lines.append(f"a client of {seen.response_id} has {len(seen.frames)} frames: {seen.frames[-1]!r}")
        return "\n".join(lines)

    def _all_answer(self) -> bool:
        return all(_reads(web) for web in self.cluster.webs)

    def _all_were_read(self) -> bool:
        """No client waits; calls that wait for consent get it meanwhile."""
        waiting = stored_rows(self.server, "toolevent", "response_id", status="awaiting_approval")
        with self.entry().http() as http:
            for (response_id,) in waiting:
                http.post(f"/v1/responses/{response_id}/approval", json={"choice": "once", "all": True})
        return not self.is_busy


def _has_begun(client: Seen) -> bool:
    """A worker runs its turn, or it was refused."""
    return len(client.frames) > 2 or bool(client.refusal or client.cut)


def _reads(web: Server) -> bool:
    """Once the database is back, requests reach it again."""
    with web.http() as http:
        return http.get("/v1/responses", params={"limit": "1"}).status_code == 200
