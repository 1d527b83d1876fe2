import secrets

from django.conf import settings
from django.db import models
from django.db.models import F
from django.utils import timezone


def new_conversation_id() -> str:
    return "conv_" + secrets.token_hex(16)


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def note_removal(self) -> None:
        """Items were removed: the token estimate is unknown, and a count under way is outdated."""
        self.update(context_tokens=None, removals=F("removals") + 1)


class Conversation(models.Model):
    id = models.CharField(primary_key=True, max_length=64, default=new_conversation_id)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="conversations"
    )
    name = models.CharField(max_length=200, null=True, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    session = models.OneToOneField(
        "responses_app.Session", on_delete=models.CASCADE, related_name="conversation"
    )
    context_tokens = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Estimated tokens of its items as a model receives them. Empty: unknown.",
    )
    compaction_position = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Position of its newest compaction; known if context_tokens is.",
    )
    removals = models.PositiveIntegerField(
        default=0, help_text="How often items were removed from it."
    )
    created_at = models.DateTimeField(default=timezone.now)

    objects = ConversationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "name"],
                condition=models.Q(name__isnull=False),
                name="conversation_name_is_unique_per_owner",
            ),
        ]
        indexes = [
            # The admin's newest-first list, and its search, which knows no owner.
            models.Index(fields=["-created_at"], name="conversation_newest"),
            models.Index(
                fields=["name"], condition=models.Q(name__isnull=False), name="conversation_by_name"
            ),
        ]

    def __str__(self) -> str:
        return self.name or self.id


class ConversationItem(models.Model):
    """One item of a conversation, in order: created by a client, or by a response."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="items")
    position = models.PositiveIntegerField()
    item_id = models.CharField(max_length=64)
    response = models.ForeignKey(
        "responses_app.Response",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="conversation_items",
    )
    item = models.JSONField(
        null=True, help_text="Empty where the item is stored with its response."
    )

    class Meta:
        constraints = [
            # The order in which context is read.
            models.UniqueConstraint(
                fields=["conversation", "position"], name="conversation_position_is_unique"
            ),
            models.UniqueConstraint(
                fields=["conversation", "item_id"], name="conversation_item_is_unique"
            ),
        ]

    def __str__(self) -> str:
        return self.item_id
