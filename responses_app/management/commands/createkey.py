from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from responses_app.management.examples import add_examples
from responses_app.models import ApiKey

KEY_NAME_CHARS = 100
USER_NAME_CHARS = 150


class Command(BaseCommand):
    help = "Create an API key. Its secret is printed once and stored nowhere."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "createkey laptop",
            "createkey phone --owner ada",
        )
        parser.add_argument("name", help="what the key is for; unique")
        parser.add_argument(
            "--owner",
            help="the owner of what the key makes (created if missing; default: the key's name)",
        )

    def handle(self, *args: Any, name: str, owner: str | None, **options: Any) -> None:
        _check_name("The name of a key", name, KEY_NAME_CHARS)
        if owner is not None:
            _check_name("--owner", owner, USER_NAME_CHARS)
        if ApiKey.objects.filter(name=name).exists():
            raise CommandError(f"A key named {name!r} exists already; choose another name.")
        user, is_new = get_user_model().objects.get_or_create(username=owner or name)
        if is_new:
            user.set_unusable_password()
            user.save()
        _, secret = ApiKey.objects.issue(name, user)
        self.stderr.write(
            f"Key {name!r} for {user.get_username()}; keep it, it is not shown again:"
        )
        self.stdout.write(secret)


def _check_name(what: str, name: str, longest: int) -> None:
    if not name.strip():
        raise CommandError(f"{what} can't be empty.")
    if len(name) > longest:
        raise CommandError(f"{what} can have at most {longest} characters, not {len(name)}.")
    if not name.isprintable():
        raise CommandError(f"{what} can have printable characters only, not {name!r}.")
