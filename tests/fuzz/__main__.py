"""``make fuzz``: many generated requests against a server of its own."""

import argparse
import secrets
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.driver import Fuzz, Report
from tests.support.server import Server

CASES = 20_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**32))
    parser.add_argument("--only", default="", help="operations with this in their name")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hermes-fuzz-") as folder:
        server = Server(Path(folder), TEST_FAKE_PLATFORM="1")
        server.manage("migrate", "--verbosity", "0")
        server.start()
        try:
            report = Fuzz(server, given.seed, given.only).run(given.cases, note=_note)
            is_clean = "Traceback" not in server.log
            if not is_clean:
                print(server.log)
        finally:
            server.kill()
    _print(report, time.monotonic() - started)
    return 0 if is_clean and not report.findings else 1


def _note(line: str) -> None:
    print(line, flush=True)


def _print(report: Report, secs: float) -> None:
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(report.statuses.items()))
    print(f"\n{report.cases} cases in {secs:.0f} s ({statuses}), {len(report.findings)} findings")


if __name__ == "__main__":
    sys.exit(main())
