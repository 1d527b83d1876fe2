import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from responses_app.management.examples import add_examples
from responses_app.management.owners import find_owner
from responses_app.management.pacing import PacedTransactions
from responses_app.management.progress import Progress
from responses_app.models import Response
from responses_app.services.archive.erasing import OwnerErasure
from responses_app.services.lifecycle.checkpoint import clean_files
from responses_app.services.search.purge import purge

WAIT_SECS = 30.0  # a process notices a cancellation within two
POLL_SECS = 0.2


class Command(BaseCommand):
    help = (
        "Erase everything of an owner: responses, sessions, conversations, tool events, notes, "
        "platform messages, grants, the search index, files of tools, keys, and the user, unless "
        "it is of the staff. Prints a receipt as JSON."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "erase_owner ada --dry-run",
            "erase_owner ada > receipt.json",
        )
        parser.add_argument("name", help="the user name of the owner")
        parser.add_argument(
            "--dry-run", action="store_true", help="count what would be erased, and erase nothing"
        )

    def handle(self, *args: Any, name: str, dry_run: bool, **options: Any) -> None:
        started_at = timezone.now()
        paced = PacedTransactions()
        erasure = OwnerErasure(find_owner(name), paced.begin)
        found = erasure.count()
        receipt: dict[str, Any] = {"owner": name, "user_id": erasure.owner.pk, "dry_run": dry_run}
        receipt["started_at"] = started_at.isoformat()
        receipt["files_elsewhere"] = erasure.files_elsewhere()  # known as long as the user is
        if dry_run:
            self._print(receipt | {"found": found})
            return
        self._stop(erasure)
        total = Response.objects.filter(owner=erasure.owner).count()
        with Progress(self.stderr, "responses erased", total) as progress:
            for count in erasure.erase_rows():
                progress.add(count)
        erasure.erase_files()
        # The user goes last: without it, a command that was killed could not be run again.
        purge(paced.begin)
        clean_files()
        receipt["user_erased"] = erasure.erase_user()
        clean_files()
        receipt["erased"] = {kind: erasure.erased[kind] for kind in found}
        receipt["finished_at"] = timezone.now().isoformat()
        self._print(receipt)
        for left in receipt["files_elsewhere"]:
            still = f"Files of {name} are still on the host {left['host']}."
            self.stderr.write(f"{still} Run there: {left['run']}")

    def _stop(self, erasure: OwnerErasure) -> None:
        erasure.stop()
        deadline = time.monotonic() + WAIT_SECS
        while (running := erasure.running()) and time.monotonic() < deadline:
            time.sleep(POLL_SECS)
        if running:
            raise CommandError(
                f"{running} responses still run, although they were cancelled; nothing was erased. "
                "Run the command again when they have ended."
            )

    def _print(self, receipt: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(receipt, indent=2))
