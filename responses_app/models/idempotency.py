from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

MAX_KEY_CHARS = 255
KEY_LIFETIME = timedelta(hours=24)
RETRY_LIFETIME = timedelta(minutes=10)  # the default timeout of the SDKs


class IdempotencyKeyQuerySet(models.QuerySet["IdempotencyKey"]):
    def expired(self) -> "IdempotencyKeyQuerySet":
        return self.filter(expires_at__lte=timezone.now())

    def current(self) -> "IdempotencyKeyQuerySet":
        return self.filter(expires_at__gt=timezone.now())

    def reserve(self, owner_id: int, key: str, digest: str, response_id: str) -> "IdempotencyKey":
        """The row of this key: a new one, or that of the request that was first.

        On PostgreSQL the insertion waits for a transaction with the same key, then sees its row.
        """
        self.expired().filter(owner_id=owner_id, key=key).delete()
        expires_at = timezone.now() + KEY_LIFETIME
        mine = IdempotencyKey(
            owner_id=owner_id,
            key=key,
            digest=digest,
            response_id=response_id,
            expires_at=expires_at,
        )
        self.bulk_create([mine], ignore_conflicts=True)
        return self.get(owner_id=owner_id, key=key)


class IdempotencyKey(models.Model):
    """A request that may be sent again: with its key, or as an SDK's automatic retry."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="idempotency_keys"
    )
    key = models.CharField(max_length=MAX_KEY_CHARS, null=True, blank=True)
    digest = models.CharField(
        max_length=64,
        help_text="Hash of the path, the body and some headers. Empty once the content is erased.",
    )
    response = models.ForeignKey(
        "responses_app.Response", on_delete=models.CASCADE, related_name="idempotency_keys"
    )
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField()

    objects = IdempotencyKeyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "key"],
                condition=Q(key__isnull=False),
                name="idempotency_key_is_unique_per_owner",
            ),
        ]
        indexes = [
            # Finds the request that an SDK retries.
            models.Index(
                fields=["owner", "digest"], condition=Q(key__isnull=True), name="idempotency_digest"
            ),
            # The housekeeping that deletes expired keys.
            models.Index(fields=["expires_at"], name="idempotency_expiry"),
        ]

    def __str__(self) -> str:
        return self.key or f"retries of {self.response_id}"
