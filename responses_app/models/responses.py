from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, When
from django.db.models.functions import Coalesce, Now
from django.db.models.lookups import GreaterThan, LessThanOrEqual
from django.utils import timezone

from responses_app.ids import new_response_id
from responses_app.models.segments import FORMAT_VERSION, EventSegment
from responses_app.models.sessions import MAX_SESSION_KEY_CHARS
from responses_app.states import LEGAL_ORIGINS, OPEN, TERMINAL, OnDisconnect, Status


class Kind(models.TextChoices):
    RESPONSES = "responses"
    CHAT = "chat"
    RUNS = "runs"
    SESSION_CHAT = "session_chat"
    COMPACTION = "compaction"


NOTED_AT_ONCE = 200  # rows in one transaction: an append to one of them waits for it
MEASURES = ("first_output_ms", "total_ms", "input_tokens", "output_tokens", "tool_calls")


def is_held() -> Q:
    """By the database's clock, as everything about leases: the clocks of two hosts differ."""
    return Q(lease_until__gt=Now())


def is_parked() -> Q:
    return Q(parked_until__gt=Now())


def _newest_format() -> Coalesce:
    """That of the last segment: a version that does not know a format adds nothing behind it."""
    log = EventSegment.objects.filter(response=OuterRef("pk")).order_by("-first_position")
    return Coalesce(Subquery(log.values("format_version")[:1]), FORMAT_VERSION)


class ResponseQuerySet(models.QuerySet["Response"]):
    def open(self) -> "ResponseQuerySet":
        # A list of statuses would be bound as parameters, and SQLite then ignores the partial indexes of open rows.
        return self.filter(finished_at__isnull=True)

    def unlocked(self) -> "ResponseQuerySet":
        """Without the rows that another session has locked: those must not keep the heartbeat waiting."""
        found = self.select_for_update(skip_locked=True).values_list("pk", flat=True)
        return self.filter(pk__in=list(found))

    def visible_to(self, owner_id: int) -> "ResponseQuerySet":
        """What clients find by its id; a compaction is told once, to who asked for it."""
        return self.filter(owner_id=owner_id, is_stored=True).exclude(kind=Kind.COMPACTION)

    def claimable(self, owner: str) -> "ResponseQuerySet":
        """Not ended, without a lease, its session is free, and this process has what it needs.

        A lease that ran out is still a lease, for its owner may live: ``release_expired`` decides.
        The request of a response that is not stored is known only to the process that admitted it.
        """
        earlier = Response.objects.open().filter(session_id=OuterRef("session_id"), turn__lt=OuterRef("turn"))
        parent = Response.objects.open().filter(pk=OuterRef("previous_id"))  # a fork's is in another session
        return (
            self.open()
            .in_known_format()
            .filter(
                Q(lease_until__isnull=True),
                ~is_parked() | Q(cancel_requested_at__isnull=False),
                Q(is_stored=True) | Q(lease_owner__in=["", owner]),
                Q(waits_for_turn=False) | Q(cancel_requested_at__isnull=False) | ~(Exists(earlier) | Exists(parent)),
            )
        )

    def claim(self, response_id: str, attempt: int, owner: str, lease: timedelta) -> bool:
        """Take the row as attempt + 1; False means somebody else has it, or it is not to be had yet.

        The old attempt is compared too: with only the lease in the condition, two PostgreSQL workers
        that both waited for the row lock would both win.
        """
        mine = self.claimable(owner).filter(pk=response_id, attempt=attempt)
        claimed = mine.update(
            attempt=attempt + 1,
            lease_owner=owner,
            lease_until=Now() + lease,
            parked_until=None,
            started_at=Coalesce(F("started_at"), Now()),
        )
        return claimed == 1

    def renew(self, owner: str, attempts: dict[str, int], lease: timedelta) -> dict[str, bool]:
        """Prolong the leases of what this owner runs; maps each to whether its cancellation was requested.

        A lease that ran out is prolonged too, as long as no other process has the row.
        """
        mine = self.open().filter(pk__in=list(attempts), lease_owner=owner)
        with transaction.atomic():
            mine.unlocked().update(lease_until=Now() + lease)
        held = mine.values_list("pk", "attempt", "cancel_requested_at")
        return {pk: asked is not None for pk, attempt, asked in held if attempt == attempts[pk]}

    def release(self, owners: list[str], *, is_crash: bool) -> int:
        """Free the rows of owners that are gone; an orderly end does not count as a crash."""
        return self.open().filter(lease_owner__in=owners)._free(is_crash=is_crash)

    def release_expired(self, live: models.QuerySet[Any, str]) -> int:
        """Free what ran out and belongs to none of the live owners."""
        return self.expired().exclude(lease_owner__in=live)._free(is_crash=True)

    def release_own(self, owner: str, working: list[str]) -> int:
        """Free what this owner holds and does not work on: an attempt that failed before it could end the row."""
        mine = self.expired().filter(lease_owner=owner).exclude(pk__in=working)
        with transaction.atomic():
            return mine.unlocked()._free(is_crash=True)

    def expired(self) -> "ResponseQuerySet":
        return self.open().filter(lease_until__lt=Now())

    def fail_attempt(self, response_id: str, attempt: int) -> bool:
        """Give the row back after an attempt that failed by itself; it counts as a crash."""
        return self.open().filter(pk=response_id, attempt=attempt)._free(is_crash=True) == 1

    def in_known_format(self) -> "ResponseQuerySet":
        """Without the logs of a newer version, which would not understand what this one adds."""
        return self.filter(LessThanOrEqual(_newest_format(), FORMAT_VERSION))

    def in_newer_format(self) -> "ResponseQuerySet":
        return self.filter(GreaterThan(_newest_format(), FORMAT_VERSION))

    def _free(self, *, is_crash: bool) -> int:
        lost = Case(When(lease_until__isnull=False, then=int(is_crash)), default=0)
        return self.update(lease_owner="", lease_until=None, crashes=F("crashes") + lost)

    def park(self, response_id: str, attempt: int, until: datetime | None) -> bool:
        """Give the row back until somebody consents; one that is not stored stays with its process."""
        mine = self.open().filter(pk=response_id, attempt=attempt)
        owner = Case(When(is_stored=True, then=models.Value("")), default=F("lease_owner"))
        return mine.update(lease_owner=owner, lease_until=None, parked_until=until) == 1

    def unpark(self, response_id: str) -> None:
        self.open().filter(pk=response_id).update(parked_until=None)

    def note_access(self, response_ids: list[str]) -> list[str]:
        """Set ``accessed_at``; returns the ids that were noted.

        A row that another transaction holds is left out, so that this never waits: two processes that
        note and append in different orders can't block each other.
        """
        noted: list[str] = []
        for start in range(0, len(response_ids), NOTED_AT_ONCE):
            chunk = self.filter(pk__in=response_ids[start : start + NOTED_AT_ONCE])
            with transaction.atomic():
                free = chunk.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True)
                locked = list(free)
                self.filter(pk__in=locked).update(accessed_at=timezone.now())
            noted += locked
        return noted

    def accessed_since(self, since: datetime, response_ids: list[str]) -> models.QuerySet["Response", str]:
        return self.filter(pk__in=response_ids, accessed_at__gte=since).values_list("pk", flat=True)

    def request_cancel(self, response_id: str, actor: str = "") -> bool:
        waiting = self.open().filter(pk=response_id, cancel_requested_at__isnull=True)
        return waiting.update(cancel_requested_at=timezone.now(), cancel_requested_by=actor) == 1

    def move(self, response_id: str, attempt: int, to: Status, **fields: Any) -> bool:
        """Change the status, fenced by the attempt and only from a legal origin."""
        if to in TERMINAL:
            fields.setdefault("finished_at", timezone.now())
        origins = self.filter(pk=response_id, attempt=attempt, status__in=LEGAL_ORIGINS[to])
        return origins.update(status=to, **fields) == 1


class Response(models.Model):
    id = models.CharField(primary_key=True, max_length=64, default=new_response_id)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="responses")
    session = models.ForeignKey("responses_app.Session", on_delete=models.CASCADE, related_name="responses")
    turn = models.PositiveIntegerField(help_text="Its place in the session.")
    session_key = models.CharField(max_length=MAX_SESSION_KEY_CHARS, blank=True, default="")
    conversation = models.ForeignKey(
        "responses_app.Conversation", null=True, blank=True, on_delete=models.SET_NULL, related_name="responses"
    )
    previous = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children")
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.RESPONSES)
    status = models.CharField(max_length=20, choices=[(s, s) for s in Status])
    model = models.CharField(max_length=200)
    requested_by = models.CharField(
        max_length=200, blank=True, default="", help_text="Who asked: a key, or an operator by name."
    )
    request = models.JSONField(default=dict, help_text="The request without its input.")
    ignored = models.JSONField(default=list, help_text="Fields of the request that nothing here acts on.")
    output = models.JSONField(null=True, help_text="The output items, once it has ended.")
    usage = models.JSONField(null=True)
    error = models.JSONField(null=True)
    quirks = models.JSONField(default=list, help_text="Departures of the upstream that were put up with.")
    incomplete_reason = models.CharField(max_length=30, blank=True)
    context_hash = models.CharField(
        max_length=64, blank=True, default="", help_text="Of the conversation up to its last output."
    )
    spoken_hash = models.CharField(
        max_length=64, blank=True, default="", help_text="The same, for clients that repeat only what was said."
    )
    is_history_resent = models.BooleanField(
        default=False, help_text="The client sent its history again; the turns before are stored with those turns."
    )
    is_history_spoken = models.BooleanField(
        default=False, help_text="It sent only what was said, without the tools' items of those turns."
    )
    # Running values of the chain that ends with this row: admission and settle read them from the
    # row before it instead of walking the chain.
    chain_root = models.CharField(max_length=64, blank=True, default="", help_text="The first turn of its chain.")
    chain_depth = models.PositiveIntegerField(default=0, help_text="How many turns of its chain are before it.")
    instructions_at = models.CharField(
        max_length=64, blank=True, default="", help_text="The turn whose instructions the next one inherits."
    )
    compaction_at = models.CharField(
        max_length=64, blank=True, default="", help_text="The nearest turn that has a compaction; see context_tokens."
    )
    context_tokens = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Estimate of the chain as a model is shown it. Empty: this and compaction_at are not known.",
    )
    message_count = models.PositiveIntegerField(default=0, help_text="What it brought to its session's transcript.")
    tool_items = models.CharField(max_length=20, default="function_call")

    is_stored = models.BooleanField(default=True)
    is_background = models.BooleanField(default=False)
    waits_for_turn = models.BooleanField(default=False, help_text="The server supplies its history.")
    on_disconnect = models.CharField(max_length=10, choices=[(d, d) for d in OnDisconnect])

    attempt = models.PositiveIntegerField(default=0)
    crashes = models.PositiveIntegerField(default=0, help_text="Attempts that ended without a word.")
    parked_until = models.DateTimeField(
        null=True, blank=True, help_text="Waits for somebody's consent, at most until then."
    )
    lease_owner = models.CharField(max_length=64, blank=True, default="")
    lease_until = models.DateTimeField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.CharField(max_length=200, blank=True, default="")
    last_position = models.IntegerField(default=-1, help_text="Of its log, once it has ended.")
    last_sequence = models.IntegerField(default=-1)
    is_log_merged = models.BooleanField(default=False)

    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    accessed_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True, help_text="Content erased; this row is the tombstone.")

    # What it took, known once it has ended; columns of their own, so that an index can hold them.
    first_output_ms = models.BigIntegerField(null=True, blank=True, help_text="From the request to the first output.")
    total_ms = models.BigIntegerField(null=True, blank=True, help_text="From the request to the end.")
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    tool_calls = models.PositiveIntegerField(default=0, help_text="Of the server's tools.")

    objects = ResponseQuerySet.as_manager()

    class Meta:
        permissions = [("use_playground", "Can use the playground")]
        constraints = [
            models.UniqueConstraint(fields=["session", "turn"], name="one_response_per_turn"),
            models.CheckConstraint(condition=Q(status__in=list(Status)), name="response_status_is_known"),
            # open() reads finished_at alone.
            models.CheckConstraint(
                condition=Q(status__in=list(OPEN), finished_at__isnull=True)
                | Q(status__in=list(TERMINAL), finished_at__isnull=False),
                name="response_is_finished_when_terminal",
            ),
        ]
        indexes = [
            # The runner's sweep: claimable(), release(); health, and the dashboard's list of what runs.
            models.Index(fields=["created_at"], condition=Q(finished_at__isnull=True), name="response_open"),
            # claimable()'s look at earlier turns of the session, next_in_session(), make_room().
            models.Index(fields=["session", "turn"], condition=Q(finished_at__isnull=True), name="response_open_turn"),
            # The housekeeping that merges the logs of ended responses.
            models.Index(fields=["finished_at"], condition=Q(is_log_merged=False), name="response_log_unmerged"),
            # admit()'s look for the turn up to which a client repeats its history. Whole indexes: SQLite can't prove
            # that a bound hash is not the empty one, and would walk over all rows of the owner.
            models.Index(fields=["owner", "context_hash"], name="response_context"),
            models.Index(fields=["owner", "spoken_hash"], name="response_spoken"),
            # deleted_before(): deleted turns of a chain.
            models.Index(
                fields=["chain_root", "chain_depth"], condition=Q(deleted_at__isnull=False), name="response_deleted"
            ),
            # newest_turn(): a session may hold thousands of tombstones and of unstored turns.
            models.Index(
                fields=["session", "turn"],
                condition=Q(is_stored=True, deleted_at__isnull=True),
                name="response_newest_turn",
            ),
            # The owner's newest-first list.
            models.Index(fields=["owner", "-created_at"], name="response_by_owner"),
            # The dashboard's numbers and lists over a window of time are read from this index alone: the rows hold
            # whole requests and answers.
            models.Index(
                fields=["finished_at", "status", "model", "requested_by", *MEASURES, "id"],
                condition=Q(finished_at__isnull=False),
                name="response_ended",
            ),
            # The admin's newest-first list, exports, and retention by age.
            models.Index(fields=["-created_at"], name="response_newest"),
            models.Index(fields=["status", "-created_at"], name="response_by_status"),
            # Eviction of what was not used for longest: counted and walked in this index alone.
            models.Index(
                fields=["accessed_at", "id"],
                condition=Q(is_stored=True, deleted_at__isnull=True),
                name="response_least_used",
            ),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def is_open(self) -> bool:
        return self.status in OPEN
