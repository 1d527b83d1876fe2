"""API keys: taken back for good."""

from django.contrib.auth.models import User
from django.db import transaction

from responses_app.models import ApiKey
from responses_app.services.audit import record


@transaction.atomic
def revoke_key(key: ApiKey, actor: User | None = None) -> bool:
    """It stops working at once, and what it made stays; False when it was revoked before."""
    is_revoked = ApiKey.objects.filter(pk=key.pk).revoke() == 1
    if is_revoked:
        record(actor, key, "Revoked.")
    return is_revoked
