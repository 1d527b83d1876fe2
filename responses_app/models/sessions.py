from django.conf import settings
from django.db import models
from django.db.models import F
from django.utils import timezone

from responses_app.ids import new_session_id

MAX_SESSION_ID_CHARS = 256


class SessionQuerySet(models.QuerySet["Session"]):
    def opened(self, owner_id: int, public_id: str | None, source: str) -> "Session":
        """The owner's session of that id, made if there is none; a new one where none is named."""
        if public_id is None:
            return self.create(owner_id=owner_id, public_id=new_session_id(), source=source)
        session, _ = self.get_or_create(owner_id=owner_id, public_id=public_id, defaults={"source": source})
        return session

    def next_turn(self, pk: int) -> int:
        """Count one more turn and say its number; the row stays locked until the turn is stored."""
        now = timezone.now()
        self.filter(pk=pk).update(turn_count=F("turn_count") + 1, last_active_at=now)
        return self.values_list("turn_count", flat=True).get(pk=pk)

    def add_usage(self, pk: int, usage: dict[str, int]) -> None:
        self.filter(pk=pk).update(
            input_tokens=F("input_tokens") + usage["input_tokens"],
            output_tokens=F("output_tokens") + usage["output_tokens"],
            last_active_at=timezone.now(),
        )


class Session(models.Model):
    public_id = models.CharField(max_length=MAX_SESSION_ID_CHARS)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="agent_sessions")
    title = models.CharField(max_length=300, blank=True)
    source = models.CharField(max_length=20)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks")
    turn_count = models.PositiveIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    last_active_at = models.DateTimeField(default=timezone.now)

    objects = SessionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner", "public_id"], name="session_id_is_unique_per_owner"),
        ]
        indexes = [
            # The admin's and the dashboard's newest-first lists.
            models.Index(fields=["-last_active_at"], name="session_by_activity"),
        ]

    def __str__(self) -> str:
        return self.title or self.public_id
