"""API keys: what they are called, and taken back for good."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from responses_app.models import ApiKey
from responses_app.services.audit import record

KEY_ACTOR = "key "


def actor_names(actors: Iterable[str]) -> dict[str, str]:
    """Who asked, as people know them: keys by their names; who deleted one left its number."""
    ids = {actor.removeprefix(KEY_ACTOR) for actor in actors if actor.startswith(KEY_ACTOR)}
    known = ApiKey.objects.filter(pk__in=[number for number in ids if number.isdigit()])
    return {f"{KEY_ACTOR}{key.pk}": f"{KEY_ACTOR}{key.name}" for key in known.only("name")}


@transaction.atomic
def revoke_key(key: ApiKey, actor: User | None = None) -> bool:
    """It stops working at once, and what it made stays; False when it was revoked before."""
    is_revoked = ApiKey.objects.filter(pk=key.pk).revoke() == 1
    if is_revoked:
        record(actor, key, "Revoked.")
    return is_revoked
