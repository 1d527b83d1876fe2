import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models.signals import m2m_changed
from django.dispatch import receiver
from django.utils import timezone

from responses_app.models.recent import forget_recent, forget_when_changed

KEY_PREFIX = "hs-"
SHOWN_CHARS = 10  # enough to recognise a key, far too few to guess the rest
LAST_USED_STEP = timedelta(minutes=1)  # a write for each request would cost too much


def hash_key(secret: str) -> str:
    """Keys are long and random, so a plain digest is as good as a slow one and can be looked up."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def issue(self, name: str, owner: User) -> tuple["ApiKey", str]:
        """A new key and its secret, which is shown once and never stored."""
        key = self.model(name=name, owner=owner)
        secret = key.give_secret()
        key.save(force_insert=True)
        return key, secret

    def valid(self) -> "ApiKeyQuerySet":
        return self.filter(revoked_at__isnull=True, owner__is_active=True)

    def touch(self, pk: int) -> int:
        return self.filter(pk=pk).update(last_used_at=timezone.now())

    def revoke(self) -> int:
        revoked = self.filter(revoked_at__isnull=True).update(revoked_at=timezone.now())
        forget_recent()
        return revoked


class ApiKey(models.Model):
    name = models.CharField(max_length=100, unique=True)
    prefix = models.CharField(max_length=SHOWN_CHARS, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_keys"
    )
    profiles = models.ManyToManyField(
        "responses_app.Profile", blank=True, help_text="Profiles this key may use; none means all."
    )
    is_limited = models.BooleanField(
        default=False,
        editable=False,
        help_text="Limited to its profiles, even after the last of them is deleted.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def give_secret(self) -> str:
        """A new secret, of which the row keeps only the digest."""
        secret = KEY_PREFIX + secrets.token_urlsafe(32)
        self.prefix = secret[:SHOWN_CHARS]
        self.digest = hash_key(secret)
        return secret

    @property
    def needs_touch(self) -> bool:
        return self.last_used_at is None or self.last_used_at < timezone.now() - LAST_USED_STEP


@receiver(m2m_changed, sender=ApiKey.profiles.through)
def _note_limits(instance: ApiKey | models.Model, action: str, **kwargs: object) -> None:
    """Deleting a profile removes it from the key's list, but does not lift the key's limit."""
    if isinstance(instance, ApiKey) and action in ("post_add", "post_remove", "post_clear"):
        ApiKey.objects.filter(pk=instance.pk).update(is_limited=instance.profiles.exists())


forget_when_changed(ApiKey, ApiKey.profiles.through, User)
