from django.conf import settings
from django.db import models
from django.utils import timezone

from responses_app.models.sessions import MAX_SESSION_KEY_CHARS


class NoteKind(models.TextChoices):
    TODO = "todo"  # a step of one session's work
    MEMORY = "memory"  # a fact for all sessions of an owner


class NoteQuerySet(models.QuerySet["Note"]):
    def in_scope(
        self, kind: str, owner_id: int, session_id: int, session_key: str
    ) -> "NoteQuerySet":
        """In their order: the notes of a session, or of an owner and a session key."""
        notes = self.filter(kind=kind, owner_id=owner_id).order_by("pk")
        if kind == NoteKind.TODO:
            return notes.filter(session_id=session_id)
        return notes.filter(session_key=session_key)

    def visible_in(self, owner_id: int, session_id: int, session_key: str) -> "NoteQuerySet":
        """Of both kinds, in their order: what a turn of this session begins with."""
        entry = models.Q(kind=NoteKind.TODO, session_id=session_id)
        memory = models.Q(kind=NoteKind.MEMORY, session_key=session_key)
        return self.filter(entry | memory, owner_id=owner_id).order_by("pk")


class Note(models.Model):
    """What a model wrote down with its tools ``todo`` and ``memory``."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="agent_notes"
    )
    kind = models.CharField(max_length=10, choices=NoteKind.choices)
    session = models.ForeignKey(
        "responses_app.Session",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="notes",
        help_text="Of a todo entry; a memory is for all sessions.",
    )
    session_key = models.CharField(
        max_length=MAX_SESSION_KEY_CHARS,
        blank=True,
        default="",
        help_text="The X-Hermes-Session-Key of the turns that see a memory.",
    )
    text = models.TextField()
    created_at = models.DateTimeField(default=timezone.now)

    objects = NoteQuerySet.as_manager()

    class Meta:
        indexes = [
            # in_scope(), at the start of each turn that has these tools. Django makes that of sessions.
            models.Index(fields=["owner", "kind", "session_key"], name="note_by_scope"),
        ]

    def __str__(self) -> str:
        return self.text[:60]
