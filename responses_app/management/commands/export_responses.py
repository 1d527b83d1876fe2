import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from responses_app.management.examples import add_examples
from responses_app.management.owners import find_owner
from responses_app.management.progress import Progress
from responses_app.models import Response
from responses_app.protocol.status import TERMINAL
from responses_app.services.archive.export import csv_lines, json_lines
from responses_app.services.archive.records import Selection, selected_conversations


class Command(BaseCommand):
    help = "Write ended responses with input, events and tools, oldest first, one JSON object per line."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "export_responses --output all.jsonl",
            "export_responses --owner ada --since 2031-05-17 --format csv > table.csv",
        )
        parser.add_argument("id", nargs="*", help="only these responses")
        parser.add_argument(
            "--output",
            "-o",
            default="-",
            help="a file that does not exist yet; - for the standard output",
        )
        parser.add_argument(
            "--format",
            choices=["jsonl", "csv"],
            default="jsonl",
            help="csv is for spreadsheets; import_responses reads jsonl",
        )
        parser.add_argument("--owner", help="only responses of this user")
        parser.add_argument("--session", help="only responses of this session")
        parser.add_argument("--model", help="only responses of this model")
        parser.add_argument(
            "--status", action="append", default=[], choices=[str(status) for status in TERMINAL]
        )
        parser.add_argument("--since", help="only responses created at this date or time or later")
        parser.add_argument("--until", help="only responses created before this date or time")

    def handle(self, *args: Any, output: str, format: str, **options: Any) -> None:
        selection = _selection(**options)
        present = Response.objects.filter(pk__in=selection.ids).values_list("pk", flat=True)
        missing = set(selection.ids) - set(present)
        if missing:
            raise CommandError(f"There is no response {', '.join(sorted(missing))}.")
        total = selection.rows().filter(finished_at__isnull=False).count()
        if format == "csv":
            lines = csv_lines
            total += 1  # the names of the columns
        else:
            lines = json_lines
            total += selected_conversations(selection).count()
        with Progress(self.stderr, "exported", total) as progress, _opened(output) as file:
            for line in lines(selection):
                file.write(line)
                progress.add()
        self.stderr.write(f"Exported {progress.count} lines.", style_func=str)
        running = selection.rows().open().count()
        if running:
            self.stderr.write(
                f"{running} responses still run and were left out; "
                "export them when they have ended."
            )


def _selection(**options: Any) -> Selection:
    owner_id = None
    if options["owner"] is not None:
        owner_id = find_owner(options["owner"]).pk
    return Selection(
        ids=tuple(options["id"]),
        owner_id=owner_id,
        session=options["session"],
        statuses=tuple(options["status"]),
        model=options["model"],
        since=_moment(options["since"], "--since"),
        until=_moment(options["until"], "--until"),
    )


def _moment(given: str | None, name: str) -> datetime | None:
    if given is None:
        return None
    try:
        moment = parse_datetime(given)
        day = parse_date(given)
        if day is not None:
            moment = datetime(day.year, day.month, day.day)
    except ValueError:
        moment = None
    if moment is None:
        raise CommandError(
            f"{name} must be a date or a time, such as 2031-05-17 or 2031-05-17T08:30, "
            f"not {given!r}."
        )
    if timezone.is_naive(moment):
        moment = timezone.make_aware(moment)
    return moment


@contextmanager
def _opened(output: str) -> Iterator[IO[bytes]]:
    if output == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        # Only its owner may read the file: it contains the conversations of others.
        Path(output).touch(mode=0o600, exist_ok=False)
        with _removed_unless_whole(Path(output)), Path(output).open("wb") as file:
            yield file
    except FileExistsError:
        raise CommandError(f"{output} exists already; choose another name.") from None
    except OSError as error:
        raise CommandError(f"Cannot write {output}: {error.strerror}.") from error


@contextmanager
def _removed_unless_whole(path: Path) -> Iterator[None]:
    """An incomplete archive must not be mistaken for a complete one."""
    try:
        yield
    except BaseException:
        path.unlink()
        raise
