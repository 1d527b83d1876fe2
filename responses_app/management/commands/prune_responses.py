from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from responses_app.management.examples import add_examples
from responses_app.management.owners import find_owner
from responses_app.management.pacing import PacedTransactions
from responses_app.management.progress import Progress
from responses_app.protocol.status import TERMINAL
from responses_app.services.archive.erasing import OwnerErasure
from responses_app.services.archive.pruning import BATCH_ROWS, Search
from responses_app.services.archive.retention import (
    Rules,
    days_ago,
    excess,
    plan,
    select,
)
from responses_app.services.lifecycle.checkpoint import clean_files
from responses_app.services.search.purge import purge


class Command(BaseCommand):
    help = (
        "Remove old responses with their input, events and tool events. A response stays while "
        "it runs, while it belongs to a conversation, and while later turns need it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "prune_responses --days 30 --dry-run",
            "prune_responses --keep 10000 --status completed",
        )
        parser.add_argument(
            "--days",
            type=float,
            help="remove responses older than this (default: HERMES_RETENTION_DAYS)",
        )
        parser.add_argument(
            "--keep",
            type=int,
            help="keep this many, the most recently used (default: HERMES_MAX_STORED_RESPONSES)",
        )
        parser.add_argument(
            "--status", action="append", default=[], choices=[str(status) for status in TERMINAL]
        )
        parser.add_argument("--owner", help="only responses of this user")
        parser.add_argument(
            "--batch", type=int, default=BATCH_ROWS, help="responses per transaction"
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="report what would be removed, and remove nothing",
        )

    def handle(self, *args: Any, dry_run: bool, batch: int, **options: Any) -> None:
        if batch < 1:
            raise CommandError("--batch must be 1 or more.")
        rules = self._rules(**options)
        selection = select(rules)
        planned = plan(selection.rows())
        self.stderr.write(
            f"{planned.found} qualify, {planned.held} of them stay: they run, "
            "belong to a conversation, or later turns need them."
        )
        if dry_run:
            self.stdout.write(f"Would remove {planned.removable} responses.")
            self._report_excess(excess(rules) - planned.removable)
            return
        removed = self._prune(Search(selection, batch), planned.removable)
        purge(PacedTransactions().begin)
        clean_files()
        self.stdout.write(f"Removed {removed} responses.")
        self._report_excess(excess(rules))
        if options["owner"] is not None and options["days"] == 0 and not rules.statuses:
            _check_nothing_left(options["owner"])

    def _rules(
        self, days: float | None, keep: int | None, status: list[str], owner: str | None, **_: Any
    ) -> Rules:
        if days is None and keep is None:
            days = settings.HERMES_RETENTION_DAYS or None
            keep = settings.HERMES_MAX_STORED_RESPONSES or None
        if days is None and keep is None:
            raise CommandError("Name a limit: --days DAYS, --keep COUNT, or both.")
        if (days is not None and days < 0) or (keep is not None and keep < 0):
            raise CommandError("--days and --keep must be 0 or more.")
        created_before = None
        if days is not None:
            created_before = days_ago(days)
        owner_id = None
        if owner is not None:
            owner_id = find_owner(owner).pk
        return Rules(
            created_before=created_before, keep=keep, statuses=tuple(status), owner_id=owner_id
        )

    def _prune(self, search: Search, total: int) -> int:
        paced = PacedTransactions()
        with Progress(self.stderr, "removed", total) as progress:
            while not search.is_over:
                batch = search.next_batch()
                if batch:
                    with paced.begin():
                        removed = search.remove(batch)
                    progress.add(removed)
            return progress.count

    def _report_excess(self, count: int) -> None:
        if count > 0:
            self.stderr.write(f"The limit is exceeded by {count}: these responses have to stay.")


def _check_nothing_left(owner: str) -> None:
    """An operator who removes all responses of an owner takes the rest for removed, too."""
    found = OwnerErasure(find_owner(owner), PacedTransactions().begin).count()
    del found["api_keys"]  # the owner may go on using them
    left = [f"{count} {kind.replace('_', ' ')}" for kind, count in found.items() if count]
    if left:
        raise CommandError(
            f"{owner} still has {', '.join(left)}. To remove everything: erase_owner {owner}"
        )
