"""Messaging platforms: the messages that came in, and those that go out."""

from collections.abc import Sequence
from datetime import timedelta

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from responses_app.models.platform_chats import (
    MAX_PLATFORM_CHARS,
    MAX_PLATFORM_ID_CHARS,
    PlatformChat,
)

MAX_SENT_KEY_CHARS = 120
END_MARK = ":end:"  # in the keys of the parts of a reply


class InboxStatus(models.TextChoices):
    RECEIVED = "received"
    ADMITTED = "admitted"
    IGNORED = "ignored"
    FAILED = "failed"


class InboxQuerySet(models.QuerySet["InboxMessage"]):
    def due(self) -> "InboxQuerySet":
        """Those to be answered, in the order in which they were written."""
        waiting = self.filter(closed_at__isnull=True, next_try_at__lte=Now())
        return waiting.order_by("sent_at", "pk")

    def admit(self, pk: int, response_id: str) -> bool:
        """From now on the response has the text. False when another process was first."""
        mine = self.filter(pk=pk, closed_at__isnull=True)
        admitted = mine.update(
            status=InboxStatus.ADMITTED, response_id=response_id, text="", closed_at=Now()
        )
        return admitted == 1

    def postpone(self, pk: int, error: str, delay: timedelta) -> int:
        mine = self.filter(pk=pk, closed_at__isnull=True)
        return mine.update(attempts=F("attempts") + 1, reason=error, next_try_at=Now() + delay)

    def give_up(self, pk: int, error: str) -> bool:
        mine = self.filter(pk=pk, closed_at__isnull=True)
        return mine.update(status=InboxStatus.FAILED, reason=error, closed_at=Now()) == 1

    def discard(self) -> int:
        """Messages that could not be answered, and that an operator does not want to try again."""
        failed = self.filter(status=InboxStatus.FAILED)
        return failed.update(status=InboxStatus.IGNORED, text="")

    def retry(self) -> int:
        """An operator's second try of messages that could not be answered."""
        failed = self.filter(status=InboxStatus.FAILED)
        return failed.update(
            status=InboxStatus.RECEIVED, attempts=0, next_try_at=Now(), closed_at=None
        )


class InboxMessage(models.Model):
    """A message, stored before it is acknowledged. A repeat finds its row."""

    platform = models.CharField(max_length=MAX_PLATFORM_CHARS)
    message_id = models.CharField(
        max_length=MAX_PLATFORM_ID_CHARS, help_text="As the platform names it."
    )
    chat = models.ForeignKey(PlatformChat, on_delete=models.CASCADE, related_name="inbox")
    sender_id = models.CharField(max_length=MAX_PLATFORM_ID_CHARS)
    sender_name = models.CharField(max_length=MAX_PLATFORM_ID_CHARS, blank=True)
    text = models.TextField(blank=True, help_text="Until its response is stored.")
    sent_at = models.DateTimeField(help_text="By the platform's clock.")
    received_at = models.DateTimeField(db_default=Now())
    status = models.CharField(
        max_length=20, choices=InboxStatus.choices, default=InboxStatus.RECEIVED
    )
    reason = models.TextField(blank=True, help_text="Why it is ignored, or the last error.")
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(db_default=Now())
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was admitted, ignored or given up."
    )
    response = models.ForeignKey(
        "responses_app.Response",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="inbox_messages",
    )

    objects = InboxQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["message_id", "platform"], name="inbox_message_is_unique"
            ),
        ]
        indexes = [
            # due(): asked once a second.
            models.Index(
                fields=["next_try_at"], condition=Q(closed_at__isnull=True), name="inbox_waiting"
            ),
            # The admin's newest-first list, and the housekeeping.
            models.Index(fields=["-received_at"], name="inbox_newest"),
            # Failed messages, for health and operators.
            models.Index(fields=["status", "-received_at"], name="inbox_by_status"),
        ]

    def __str__(self) -> str:
        return f"{self.platform} {self.message_id}"


class OutboxStatus(models.TextChoices):
    PENDING = "pending"
    SENDING = "sending"
    SENT = "sent"
    DEAD = "dead"
    DRAFT = "draft"  # grows while its turn runs; the reply replaces its text
    WITHDRAWN = "withdrawn"


class OutboxQuerySet(models.QuerySet["OutboxMessage"]):
    def due(self, platform: str) -> "OutboxQuerySet":
        """The first unsent message of each chat, if its time has come.

        A message whose sender died is due again when its claim is over.
        """
        unsent = OutboxMessage.objects.filter(chat_id=OuterRef("chat_id"), closed_at__isnull=True)
        has_earlier = Exists(unsent.filter(pk__lt=OuterRef("pk")))
        waiting = self.filter(platform=platform, closed_at__isnull=True, next_try_at__lte=Now())
        return waiting.filter(~has_earlier).order_by("next_try_at", "pk")

    def claim(self, pk: int, attempts: int, claim_secs: float) -> bool:
        """Until then no other process sends it; the old count makes one of two claims fail."""
        mine = self.filter(pk=pk, attempts=attempts, closed_at__isnull=True)
        until = Now() + timedelta(seconds=claim_secs)
        claimed = mine.update(
            status=OutboxStatus.SENDING, attempts=F("attempts") + 1, next_try_at=until
        )
        return claimed == 1

    def begin_draft(self, chat: PlatformChat, response_id: str, key: str) -> int | None:
        """A row for a draft that is on its way; None when another process was first."""
        row, is_new = self.get_or_create(
            key=key,
            defaults={
                "platform": chat.platform,
                "chat": chat,
                "response_id": response_id,
                "status": OutboxStatus.DRAFT,
                "closed_at": Now(),
            },
        )
        if not is_new:
            return None
        return int(row.pk)

    def mark_sent(self, pk: int, platform_message_id: str) -> bool:
        """The platform has the text, and the response has it too."""
        unsent = self.filter(pk=pk).exclude(status=OutboxStatus.SENT)
        # The report of its failed delivery may come first.
        unsent = unsent.exclude(status=OutboxStatus.DEAD, platform_message_id=platform_message_id)
        return unsent._close_as_sent(platform_message_id) == 1

    def note_delivery(self, key: str, platform_message_id: str) -> int:
        """The platform reports a message, whose sender may have died before it noted that.

        A late report of a message that failed does not count for its next try.
        """
        unsent = self.filter(key=key, closed_at__isnull=True)
        return unsent.exclude(platform_message_id=platform_message_id)._close_as_sent(
            platform_message_id
        )

    def _close_as_sent(self, platform_message_id: str) -> int:
        return self.update(
            status=OutboxStatus.SENT,
            platform_message_id=platform_message_id,
            closed_at=Now(),
            text="",
            error="",
        )

    def postpone(self, pk: int, attempts: int, error: str, delay_secs: float) -> int:
        """By the process that claimed it; another one may have claimed it since."""
        mine = self.filter(pk=pk, attempts=attempts, status=OutboxStatus.SENDING)
        later = Now() + timedelta(seconds=delay_secs)
        return mine.update(status=OutboxStatus.PENDING, error=error, next_try_at=later)

    def mark_dead(self, pk: int, attempts: int, error: str) -> int:
        mine = self.filter(pk=pk, attempts=attempts, status=OutboxStatus.SENDING)
        return mine.update(status=OutboxStatus.DEAD, error=error, closed_at=Now())

    def note_failed_delivery(self, key: str, platform_message_id: str, error: str) -> int:
        """The platform took it, and reports that it can't be delivered.

        A repeated report does not count for the next try of the same message.
        """
        is_open = Q(closed_at__isnull=True) & ~Q(platform_message_id=platform_message_id)
        is_sent = Q(status=OutboxStatus.SENT, platform_message_id=platform_message_id)
        return self.filter(is_open | is_sent, key=key).update(
            status=OutboxStatus.DEAD,
            platform_message_id=platform_message_id,
            error=error,
            closed_at=Now(),
        )

    def retry(self) -> int:
        """Dead letters, once more from the start.

        The text of one that the platform took first is in its response alone.
        """
        has_text = ~Q(text="") | Q(response__isnull=False, key__contains=END_MARK)
        return self.filter(has_text, status=OutboxStatus.DEAD).update(
            status=OutboxStatus.PENDING,
            attempts=0,
            next_try_at=Now(),
            created_at=Now(),
            closed_at=None,
        )

    def discard(self) -> int:
        """Dead letters that an operator does not want to send again."""
        dead = self.filter(status=OutboxStatus.DEAD)
        return dead.update(status=OutboxStatus.WITHDRAWN, text="", closed_at=Now())

    def erase(self, response_id: str) -> int:
        """The content of the response is deleted: what was not sent stays unsent."""
        unsent = self.filter(response_id=response_id).exclude(status=OutboxStatus.SENT)
        return unsent.update(status=OutboxStatus.WITHDRAWN, text="", error="", closed_at=Now())

    def add(self, messages: Sequence["OutboxMessage"]) -> None:
        """A message that exists is left as it is."""
        self.bulk_create(messages, ignore_conflicts=True)


class OutboxMessage(models.Model):
    """A message to a chat: stored with the end of its response, sent at least once."""

    platform = models.CharField(max_length=MAX_PLATFORM_CHARS)
    chat = models.ForeignKey(PlatformChat, on_delete=models.CASCADE, related_name="outbox")
    response = models.ForeignKey(
        "responses_app.Response",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="outbox_messages",
    )
    key = models.CharField(
        max_length=MAX_SENT_KEY_CHARS,
        unique=True,
        help_text="Goes to the platform with the message, so that a repeat can be recognised.",
    )
    text = models.TextField(blank=True, help_text="Until it is sent.")
    reply_to = models.CharField(max_length=MAX_PLATFORM_ID_CHARS, blank=True)
    status = models.CharField(
        max_length=20, choices=OutboxStatus.choices, default=OutboxStatus.PENDING
    )
    attempts = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, help_text="The last one.")
    created_at = models.DateTimeField(db_default=Now())
    next_try_at = models.DateTimeField(
        db_default=Now(), help_text="When it is tried next, or the end of its sender's claim."
    )
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was sent, given up or withdrawn."
    )
    platform_message_id = models.CharField(max_length=MAX_PLATFORM_ID_CHARS, blank=True)

    objects = OutboxQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "outbox messages"
        indexes = [
            # due(): asked once a second.
            models.Index(
                fields=["chat", "id"], condition=Q(closed_at__isnull=True), name="outbox_unsent"
            ),
            # Dead letters, for health and operators.
            models.Index(fields=["status", "-created_at"], name="outbox_by_status"),
            # Our own messages that a platform sends back, and reports of their delivery.
            models.Index(fields=["platform_message_id", "platform"], name="outbox_by_sent_id"),
            # The admin's newest-first list, and the housekeeping.
            models.Index(fields=["-created_at"], name="outbox_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.platform} {self.key}"
