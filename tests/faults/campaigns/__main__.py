"""``make faults``: every campaign on every database of this machine, and a table of what was found."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.campaigns import KINDS, Campaign
from tests.faults.campaigns.cluster import CLUSTER_KINDS
from tests.support.databases import find_program, postgres_cluster
from tests.support.migrated_database import Database
from tests.support.ports import free_port

HEAD = (
    "| campaign | database | seed | N | responses checked | lost | stuck | run twice | bound | remarks |\n"
    + "|---" * 10
    + "|"
)


@dataclass(frozen=True)
class Row:
    kind: type[Campaign]
    database: str
    seed: int
    legs: list[Campaign]
    finding: str = ""

    def __str__(self) -> str:
        faults = sum(leg.faults for leg in self.legs)
        checked = sum(leg.checked for leg in self.legs)
        bound = f"{min(300 / faults, 100):.2g} %" if faults and self.kind.has_bound else ""
        zeros = ("0", "0", "0") if not self.finding else ("see above",) * 3
        remark = self.finding or self.kind.remark(self.legs)
        cells = (f"{self.kind.name} ({self.kind.counts})", self.database, self.seed, faults, checked, *zeros, bound)
        return f"| {' | '.join(map(str, cells))} | {remark} |"


@contextmanager
def databases(folder: Path, *, has_sqlite: bool) -> Iterator[dict[str, Database]]:
    found = {"SQLite": Database(folder, None)} if has_sqlite else {}
    if find_program("initdb") is None:
        print("PostgreSQL is not on this machine, and left out. To have it: apt-get install postgresql")
        yield found
        return
    # On every address: a campaign has a worker in a network of its own.
    with postgres_cluster(free_port(), listen_addresses="'*'") as cluster:
        yield found | {"PostgreSQL": Database(folder, cluster)}


def run(kind: type[Campaign], database: Database, name: str, rounds: int, seed: int, folder: Path) -> Row:
    total, legs = kind.size(rounds), list[Campaign]()
    for begun in range(0, total, kind.leg):
        home = folder / f"{kind.__name__}-{name}-{begun}"
        reply = Progress(f"{kind.name} on {name}", begun, total)
        try:
            with kind.opened(database, home, f"{seed}/{begun}") as campaign:
                legs.append(campaign)
                campaign.run(min(kind.leg, total - begun), reply)
        except Exception as error:
            traceback.print_exc()
            print(f"FAILED: {kind.name} on {name}, seed {seed}; the server's home is kept in {home}", flush=True)
            return Row(kind, name, seed, legs, f"{type(error).__name__}: {error}"[:300].replace("\n", " "))
        shutil.rmtree(home)
    return Row(kind, name, seed, legs)


class Progress:
    """A line now and then; a campaign may take hours."""

    EVERY_SECS = 15.0

    def __init__(self, what: str, begun: int, total: int) -> None:
        self.what, self.begun, self.total = what, begun, total
        self._printed_at = time.monotonic()

    def __call__(self, done: int) -> None:
        if time.monotonic() - self._printed_at > self.EVERY_SECS:
            self._printed_at = time.monotonic()
            print(f"{self.what}: {self.begun + done} of {self.total}", flush=True)


def chosen(kinds: Sequence[type[Campaign]], names: list[str] | None) -> list[type[Campaign]]:
    """Those of the given names that can run here."""
    known = {kind.__name__: kind for kind in kinds}
    unknown = set(names or ()) - set(known)
    if unknown:
        raise SystemExit(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(known)}.")
    found = []
    for kind in [known[name] for name in names or known]:
        if kind.unavailable():
            print(f"Left out: {kind.name}: {kind.unavailable()}.")
        else:
            found.append(kind)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="10 is what the suite does, 500 a night's work")
    parser.add_argument("--seed", type=int, default=None, help="of a run that is to be repeated")
    parser.add_argument("--cluster", action="store_true", help="several processes on PostgreSQL and Redis")
    parser.add_argument("--only", nargs="*", help="names of campaigns")
    options = parser.parse_args()
    kinds = chosen(CLUSTER_KINDS if options.cluster else KINDS, options.only)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server is left behind
    print(f"ROUNDS={options.rounds} SEED={seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="hermes-faults-"))
    rows = []
    with databases(folder, has_sqlite=not options.cluster) as found:
        for kind in kinds:
            for name, database in found.items():
                rows.append(run(kind, database, name, options.rounds, seed, folder))
                print(rows[-1], flush=True)
    print("", HEAD, *rows, sep="\n")
    print("\nWith 95 % confidence, fewer faults than the bound (3/N) lose, hang or repeat anything.")
    has_failed = any(row.finding for row in rows)
    if not has_failed:
        shutil.rmtree(folder)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
