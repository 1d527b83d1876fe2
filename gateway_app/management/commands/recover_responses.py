from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from gateway_app.runtime import recovery
from responses_app.management.examples import add_examples
from responses_app.management.progress import Progress


class Command(BaseCommand):
    help = (
        "Recover the responses of dead processes. Those that may continue are freed for a running "
        "server, the others end as incomplete. A running server does the same by itself."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(parser, "recover_responses --dry-run", "recover_responses --settle")
        parser.add_argument("--settle", action="store_true", help="end all of them as incomplete")
        parser.add_argument(
            "--dry-run", action="store_true", help="report what would be done, and change nothing"
        )

    def handle(self, *args: Any, settle: bool, dry_run: bool, **options: Any) -> None:
        dead = recovery.find_dead()
        found = recovery.find_interrupted(dead)
        ending = [response for response in found if settle or response.is_given_up]
        goes_on = len(found) - len(ending)
        if dry_run:
            self.stdout.write(
                f"{len(dead.ids)} dead processes. "
                f"Would free {goes_on} responses and end {len(ending)} as incomplete."
            )
            return
        recovery.free(dead)
        with Progress(self.stderr, "ended", len(ending)) as progress:
            for response in ending:
                progress.add(recovery.abandon_interrupted(response))
        self.stdout.write(
            f"{len(dead.ids)} dead processes. "
            f"Freed {goes_on} responses, ended {progress.count} as incomplete."
        )
        if len(ending) > progress.count:
            self.stderr.write(
                f"{len(ending) - progress.count} were taken by a running server meanwhile, "
                "or wait for an earlier turn."
            )
        if goes_on and not recovery.live_processes():
            self.stderr.write(
                "No server runs: the freed responses continue when one starts (manage.py serve)."
            )
