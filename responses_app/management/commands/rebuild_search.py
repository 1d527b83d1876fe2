from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from responses_app.management.examples import add_examples
from responses_app.management.pacing import PacedTransactions
from responses_app.management.progress import Progress
from responses_app.models import SearchEntry
from responses_app.services.search.purge import purge
from responses_app.services.search.rebuild import clear, rebuild, searchable


class Command(BaseCommand):
    help = (
        "Add to the search index what is stored and not in it yet: after an upgrade from a version "
        "without it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "rebuild_search",
            "rebuild_search --all",
        )
        parser.add_argument("--all", action="store_true", help="empty the index first")

    def handle(self, *args: Any, all: bool, **options: Any) -> None:
        paced = PacedTransactions()
        if all:
            clear(paced.begin)
        before = SearchEntry.objects.count()
        with Progress(self.stderr, "searched for words", searchable().count()) as progress:
            for count in rebuild(paced.begin):
                progress.add(count)
        purge(paced.begin)
        added = SearchEntry.objects.count() - before
        self.stdout.write(f"{added} of {progress.count} responses added to the search index.")
