import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from responses_app.management.collecting import rare_collections
from responses_app.management.examples import add_examples
from responses_app.management.owners import find_owner
from responses_app.management.pacing import PacedTransactions
from responses_app.management.progress import Progress
from responses_app.services.archive.checking import BadRecord
from responses_app.services.archive.restore import Outcome, Restore

BATCH_RECORDS = 50  # in one transaction: the writes of all streams wait for it
BATCH_BYTES = 4_000_000
BLOCK_BYTES = 1_000_000


class Command(BaseCommand):
    help = (
        "Import what export_responses wrote. Ids stay the same. Responses that exist are skipped, "
        "so the command can be run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "import_responses all.jsonl --dry-run",
            "import_responses all.jsonl",
        )
        parser.add_argument("file", help="JSON lines; - for the standard input")
        parser.add_argument(
            "--owner",
            help="the owner of everything (default: the users in the file, created if missing)",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="check every record, and store nothing"
        )

    def handle(
        self, *args: Any, file: str, owner: str | None, dry_run: bool, **options: Any
    ) -> None:
        user = None
        if owner is not None:
            user = find_owner(owner)
        restore = Restore(user, is_rehearsal=dry_run, open_transaction=PacedTransactions().begin)
        outcomes: Counter[Outcome] = Counter()
        refused = 0
        with (
            rare_collections(),
            Progress(self.stderr, "read", _count(file)) as progress,
            _opened(file) as lines,
        ):
            for batch in _batches(lines):
                for number, line, outcome in _restored(restore, batch):
                    if isinstance(outcome, BadRecord):
                        refused += 1
                        progress.clear()
                        self.stderr.write(f"Line {number}{_named(line)}: {outcome}")
                    else:
                        outcomes[outcome] += 1
                progress.add(len(batch))
        added = f"{outcomes[Outcome.ADDED]} added"
        if dry_run:
            added = f"Would add {outcomes[Outcome.ADDED]}"
        self.stdout.write(f"{added}, {outcomes[Outcome.KNOWN]} already here.")
        if refused:
            raise CommandError(
                f"{refused} of {progress.count} records were refused; the lines above name why."
            )


def _count(name: str) -> int | None:
    """How many lines a file has; None for a pipe."""
    if not Path(name).is_file():
        return None
    with _opened(name) as file:
        return sum(block.count(b"\n") for block in iter(partial(file.read, BLOCK_BYTES), b""))


def _batches(lines: IO[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """What is stored in one transaction; at most a few megabytes."""
    batch: list[tuple[int, bytes]] = []
    size = 0
    for number, line in enumerate(lines, 1):
        batch.append((number, line))
        size += len(line)
        if len(batch) == BATCH_RECORDS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _restored(
    restore: Restore, batch: list[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes, Outcome | BadRecord]]:
    records: list[Any] = []
    broken: dict[int, BadRecord] = {}
    for number, line in batch:
        try:
            records.append(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            broken[number] = BadRecord(f"it is not JSON ({error}). Is the file whole?")
    outcomes = iter(restore.restore(records))
    for number, line in batch:
        yield number, line, broken.get(number) or next(outcomes)


def _named(line: bytes) -> str:
    try:
        return f" ({orjson.loads(line)['response']['id']})"
    except (ValueError, KeyError, TypeError):
        return ""


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(name).open("rb") as file:
            yield file
    except OSError as error:
        raise CommandError(f"Cannot read {name}: {error.strerror}.") from error
