"""API keys: their names, and their revocation."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from responses_app.eventlog.hints import announce_revocation
from responses_app.models import ApiKey
from responses_app.services.audit import record

KEY_ACTOR = "key "


def actor_names(actors: Iterable[str]) -> dict[str, str]:
    """The display names of actors that are keys; a deleted key has none."""
    ids: set[str] = set()
    for actor in actors:
        key_id = actor.removeprefix(KEY_ACTOR)
        if actor.startswith(KEY_ACTOR) and key_id.isdigit():
            ids.add(key_id)
    known = ApiKey.objects.filter(pk__in=ids).only("name")
    return {f"{KEY_ACTOR}{key.pk}": f"{KEY_ACTOR}{key.name}" for key in known}


@transaction.atomic
def revoke_key(key: ApiKey, actor: User | None = None) -> bool:
    """Stop the key at once; its responses stay. False when it was revoked before."""
    is_revoked = ApiKey.objects.filter(pk=key.pk).revoke() == 1
    if is_revoked:
        record(actor, key, "Revoked.")
        transaction.on_commit(announce_revocation)
    return is_revoked
