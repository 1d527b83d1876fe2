"""Messaging platforms: the state of each, and their chats."""

from django.db import models
from django.db.models.functions import Now

MAX_PLATFORM_CHARS = 40
MAX_PLATFORM_ID_CHARS = 255  # of a chat, a sender or a message


class PlatformStatus(models.TextChoices):
    STOPPED = "stopped"
    CONNECTING = "connecting"
    PAIRING = "pairing"
    CONNECTED = "connected"
    FAILED = "failed"


class PlatformState(models.Model):
    """What the process that is connected to a platform last reported."""

    platform = models.CharField(primary_key=True, max_length=MAX_PLATFORM_CHARS)
    status = models.CharField(
        max_length=20, choices=PlatformStatus.choices, default=PlatformStatus.STOPPED
    )
    error = models.TextField(blank=True, help_text="The last error.")
    error_at = models.DateTimeField(null=True, blank=True)
    pairing_code = models.TextField(blank=True, help_text="To be scanned as a QR code.")
    cursor = models.CharField(
        max_length=200, blank=True, help_text="Up to where its messages are stored here."
    )
    reported_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.platform


class PlatformChat(models.Model):
    """A chat of a platform, and the session that its turns belong to."""

    platform = models.CharField(max_length=MAX_PLATFORM_CHARS)
    chat_id = models.CharField(max_length=MAX_PLATFORM_ID_CHARS)
    name = models.CharField(max_length=MAX_PLATFORM_ID_CHARS, blank=True)
    is_group = models.BooleanField(default=False)
    is_self = models.BooleanField(default=False, help_text="The account's chat with itself.")
    is_paused = models.BooleanField(default=False, help_text="Its messages are not answered.")
    session = models.ForeignKey(
        "responses_app.Session",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="platform_chats",
    )
    last_message_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["platform", "chat_id"], name="platform_chat_is_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.platform} {self.name or self.chat_id}"
