from typing import Any

from django.conf import settings
from django.db import models
from django.utils import timezone

from responses_app.models.compiled import CompiledQuery, CompiledUpdate
from responses_app.models.compiled_insert import CompiledInsert
from responses_app.protocol.errors import SessionNotFound
from responses_app.protocol.ids import new_session_id
from responses_app.protocol.response_object import UsageBody

MAX_SESSION_ID_CHARS = 256
MAX_SESSION_KEY_CHARS = 256
MAX_TITLE_CHARS = 300


class TurnPolicy(models.TextChoices):
    """What happens to a turn that arrives while another turn of its session runs."""

    QUEUE = "queue"
    REJECT = "reject"
    INTERRUPT = "interrupt"


class SessionQuerySet(models.QuerySet["Session"]):
    def opened(self, owner_id: int, public_id: str | None, source: str) -> "Session":
        """The owner's session with that id, created if missing; a new one if no id is given."""
        found: Session | None = None
        if public_id is not None:
            found = _session_with_id.instance(owner_id, public_id)
        if found is not None:
            return found
        session: Session = _session_insert.new(
            owner_id=owner_id, public_id=public_id or new_session_id(), source=source
        )
        if _session_insert.insert_if_new(session):
            return session
        # Another process has just created it.
        return self.of_owner(owner_id).get(public_id=session.public_id)

    def of_owner(self, owner_id: int) -> "SessionQuerySet":
        return self.filter(owner_id=owner_id, deleted_at__isnull=True)

    def next_turn(self, pk: int, key: str = "", *, has_server_history: bool = False) -> int:
        """The number of the next turn; the row stays locked until the transaction ends."""
        changes: dict[str, Any] = {
            "last_active_at": timezone.now(),
            "ended_at": None,
            "end_reason": "",
        }
        if key:
            changes["key"] = key
        if has_server_history:
            changes["has_server_history"] = True
        turn = _undeleted_update.returning("turn_count", [pk], changes, {"turn_count": 1})
        if turn is None:
            # The session was deleted a moment ago.
            public_id = self.values_list("public_id", flat=True).get(pk=pk)
            raise SessionNotFound(str(public_id))
        return int(turn)

    def add_usage(self, pk: int, usage: UsageBody) -> int:
        """Returns how many turns the session has; 0 if it is gone."""
        added = {
            "input_tokens": usage["input_tokens"],
            "output_tokens": usage["output_tokens"],
        }
        changes = {"last_active_at": timezone.now()}
        return int(_session_update.returning("turn_count", [pk], changes, added) or 0)


class Session(models.Model):
    public_id = models.CharField(max_length=MAX_SESSION_ID_CHARS)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="agent_sessions"
    )
    key = models.CharField(
        max_length=MAX_SESSION_KEY_CHARS,
        blank=True,
        default="",
        help_text="The newest X-Hermes-Session-Key.",
    )
    title = models.CharField(max_length=MAX_TITLE_CHARS, blank=True)
    model = models.CharField(
        max_length=200, blank=True, help_text="The model of turns that name none."
    )
    instructions = models.TextField(blank=True, help_text="Sent to the model in every turn.")
    turn_policy = models.CharField(
        max_length=10, choices=TurnPolicy.choices, default=TurnPolicy.QUEUE
    )
    source = models.CharField(max_length=20)
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="forks"
    )
    fork_point = models.ForeignKey(
        "responses_app.Response",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="forked_sessions",
        help_text="The turn of its parent that its first turn continues.",
    )
    turn_count = models.PositiveIntegerField(default=0)
    has_server_history = models.BooleanField(
        default=False,
        help_text="It has a turn whose history the server supplied, "
        "so resent history does not continue it.",
    )
    input_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    last_active_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    end_reason = models.CharField(max_length=100, blank=True)
    is_pinned = models.BooleanField(default=False)
    is_archived = models.BooleanField(default=False)
    is_hidden = models.BooleanField(default=False)
    is_unread = models.BooleanField(default=False)
    deleted_at = models.DateTimeField(
        null=True, blank=True, help_text="Content erased; its id may be used again."
    )

    objects = SessionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "public_id"],
                condition=models.Q(deleted_at__isnull=True),
                name="session_id_is_unique_per_owner",
            ),
            models.UniqueConstraint(
                fields=["owner", "title"],
                condition=~models.Q(title=""),
                name="session_title_is_unique_per_owner",
            ),
        ]
        indexes = [
            # The admin's and the dashboard's newest-first lists.
            models.Index(fields=["-last_active_at"], name="session_by_activity"),
            # The owner's list, and the operator's own sessions in the playground.
            models.Index(fields=["owner", "-last_active_at"], name="session_by_owner"),
            # The admin's search, which knows no owner.
            models.Index(fields=["public_id"], name="session_by_public_id"),
        ]

    def __str__(self) -> str:
        return self.title or self.public_id


# -- compiled statements ----------------------------------------------------------------
def _with_key(pk: int) -> SessionQuerySet:
    return Session.objects.filter(pk=pk)


def _undeleted(pk: int) -> SessionQuerySet:
    return Session.objects.filter(pk=pk, deleted_at__isnull=True)


def _with_id(owner_id: int, public_id: str) -> SessionQuerySet:
    return Session.objects.of_owner(owner_id).filter(public_id=public_id)


_session_insert = CompiledInsert(Session)
_session_update = CompiledUpdate(_with_key)
_undeleted_update = CompiledUpdate(_undeleted)
_session_with_id = CompiledQuery(_with_id)
