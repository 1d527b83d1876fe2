import random
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from responses_app.management.examples import add_examples
from responses_app.management.progress import Progress
from responses_app.management.seeding.plan import OWNERS, PlannedSession, plan_sessions
from responses_app.management.seeding.rows import Batch
from responses_app.management.seeding.templates import make_templates
from responses_app.models import Response
from responses_app.protocol.ids import RESPONSE_PREFIX

OWNER_PREFIX = "seed-"
TEMPLATES = 200
SESSIONS_PER_BATCH = 500
# The last seeded response ends at this time, so that a seed always gives the same rows.
END = datetime(2026, 1, 1, tzinfo=UTC)


class Command(BaseCommand):
    help = (
        "Store made-up responses: sessions, chains and conversations of some owners, with their "
        "logs and tool calls. For trying things on a database of realistic size."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "seed_responses 1000",
            "createkey reader --owner seed-1",
        )
        parser.add_argument("count", type=_positive, help="how many responses")
        parser.add_argument(
            "--seed", type=int, default=1, help="the same number gives the same rows (default 1)"
        )
        parser.add_argument(
            "--days", type=_positive, default=180, help="spread over so many days (default 180)"
        )
        parser.add_argument(
            "--end", type=_moment, default=None, help="the newest is this old at most: a date"
        )
        parser.add_argument(
            "--yes", action="store_true", help="also where other owners have responses"
        )

    def handle(
        self,
        *args: Any,
        count: int,
        seed: int,
        days: int,
        end: datetime | None,
        yes: bool,
        **options: Any,
    ) -> None:
        if not yes:
            _check_database()
        source = random.Random(seed)  # noqa: S311
        templates = make_templates(source, TEMPLATES)
        sessions = plan_sessions(source, templates, count, end or END, days)
        first = next(sessions)
        _check_seed(first, seed)
        owner_ids = [_owner(number) for number in range(OWNERS)]
        with Progress(self.stderr, "responses stored", count) as progress:
            for batch in _batches(first, sessions):
                with transaction.atomic():
                    stored = Batch(owner_ids).store(batch)
                progress.add(stored)
        self.stdout.write(f"{progress.count} responses stored.")


def _batches(
    first: PlannedSession, rest: Iterator[PlannedSession]
) -> Iterator[list[PlannedSession]]:
    batch = [first, *islice(rest, SESSIONS_PER_BATCH - 1)]
    while batch:
        yield batch
        batch = list(islice(rest, SESSIONS_PER_BATCH))


def _check_database() -> None:
    """The responses of real users are a sign of a database that is in use."""
    others = Response.objects.exclude(owner__username__startswith=OWNER_PREFIX)
    if others.exists():
        raise CommandError(
            "This database has responses of other owners. Seeded ones would be mixed with them, "
            "in the dashboard too. Use another HERMES_HOME or DATABASE_URL, or --yes."
        )


def _check_seed(first: PlannedSession, seed: int) -> None:
    if Response.objects.filter(pk=RESPONSE_PREFIX + first.turns[0].hex_id).exists():
        raise CommandError(f"The responses of --seed {seed} are here already; use another number.")


def _owner(number: int) -> int:
    owner, is_new = User.objects.get_or_create(username=f"{OWNER_PREFIX}{number + 1}")
    if is_new:
        owner.set_unusable_password()
        owner.save()
    return owner.pk


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment
