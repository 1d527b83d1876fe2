import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from responses_app.management.owners import find_owner
from responses_app.management.pacing import PacedTransactions
from responses_app.management.progress import Progress
from responses_app.services.archive.checking import BadRecord
from responses_app.services.archive.restore import Outcome, Restore


class Command(BaseCommand):
    help = (
        "Import what export_responses wrote. Ids stay the same. Responses that exist are skipped, "
        "so the command can be run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
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
        with Progress(self.stderr, "read") as progress, _opened(file) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    outcomes[restore.restore(_parsed(line))] += 1
                except BadRecord as error:
                    refused += 1
                    self.stderr.write(f"Line {number}{_named(line)}: {error}")
                progress.add()
        added = f"{outcomes[Outcome.ADDED]} added"
        if dry_run:
            added = f"Would add {outcomes[Outcome.ADDED]}"
        self.stdout.write(f"{added}, {outcomes[Outcome.KNOWN]} already here.")
        if refused:
            raise CommandError(
                f"{refused} of {progress.count} records were refused; the lines above say why."
            )


def _parsed(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadRecord(f"it is not JSON ({error}). Is the file whole?") from error


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
