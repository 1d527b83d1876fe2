from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from responses_app.eventlog.hints import announce_revocation
from responses_app.management.examples import add_examples
from responses_app.models import ApiKey


class Command(BaseCommand):
    help = "Revoke an API key. It stops working at once; its responses stay."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(parser, "revokekey laptop")
        parser.add_argument("name")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        if not ApiKey.objects.filter(name=name).revoke():
            raise CommandError(f"There is no valid key named {name!r}.")
        announce_revocation()
        self.stdout.write(f"Revoked {name!r}.")
