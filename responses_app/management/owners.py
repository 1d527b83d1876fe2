from contextlib import suppress

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def find_owner(name: str) -> User:
    owner = None
    with suppress(UnicodeEncodeError):  # no name has bytes that are not UTF-8
        name.encode()
        owner = User.objects.filter(username=name).first()
    if owner is None:
        raise CommandError(f"There is no user named {name!r}; the admin lists them under Users.")
    return owner
