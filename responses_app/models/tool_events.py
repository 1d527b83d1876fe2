import json

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Cast, Concat, Now
from django.utils import timezone

from responses_app.models.compiled import CompiledUpdate


class ToolStatus(models.TextChoices):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    AWAITING_APPROVAL = "awaiting_approval"
    DENIED = "denied"


UNKNOWN_TOOL = "unknown"  # the name in the ledger of a tool that the server does not have
OPEN_CALLS = (ToolStatus.RUNNING, ToolStatus.AWAITING_APPROVAL)
UNSTARTED_CALLS = (ToolStatus.AWAITING_APPROVAL, ToolStatus.DENIED)


class Decision(models.TextChoices):
    ONCE = "once"
    SESSION = "session"
    ALWAYS = "always"
    DENY = "deny"


class Approver(models.TextChoices):
    """Who decides about a call. Operators and the root key also decide the calls of clients."""

    OPERATOR = "operator"
    CLIENT = "client"

    def covers(self, approver: str) -> bool:
        return self is Approver.OPERATOR or approver == self


class ApprovalMode(models.TextChoices):
    """What a call does that needs an approval."""

    WAIT = "wait"  # for the decision; the turn goes on after it
    REQUEST = "request"  # a call that the client decides ends the turn with a request to it
    DENY = "deny"  # its API has no way to ask


ONE_TIME_DECISIONS = (Decision.ONCE, Decision.DENY)


def decisions_for(*, can_keep_consent: bool) -> tuple[Decision, ...]:
    if can_keep_consent:
        return tuple(Decision)
    return ONE_TIME_DECISIONS


class ToolEventQuerySet(models.QuerySet["ToolEvent"]):
    def end(
        self, response_id: str, call_id: str, status: ToolStatus, output: str, images: str = ""
    ) -> bool:
        """Record the result of an open call; False when it is over already."""
        mine = self.filter(response_id=response_id, call_id=call_id, status__in=OPEN_CALLS)
        ended = mine.update(status=status, output=output, images=images, finished_at=timezone.now())
        return ended == 1

    def start(self, response_id: str, call_id: str, attempt: int) -> bool:
        """An open call runs now: one that was approved, or one that may run again."""
        mine = self.filter(response_id=response_id, call_id=call_id, status__in=OPEN_CALLS)
        started = mine.update(status=ToolStatus.RUNNING, attempt=attempt, started_at=timezone.now())
        return started == 1

    def interrupt(self, response_id: str) -> int:
        """End the open calls of a response that has ended; whether they took effect is unknown."""
        ended = {"status": ToolStatus.INTERRUPTED, "finished_at": timezone.now()}
        return _open_calls_update.execute([response_id], ended)

    def overdue(self) -> "ToolEventQuerySet":
        """By the database's clock, which also decides when a response that waits is claimable."""
        return self.filter(expires_at__lte=Now())

    def erase(self) -> int:
        """Keep the tools, their statuses and times; the ids of calls are text of the model."""
        numbered = Concat(models.Value("erased_"), Cast("pk", models.CharField()))
        return self.update(arguments="", output="", images="", approval_reason="", call_id=numbered)

    def undecided(self) -> "ToolEventQuerySet":
        return self.filter(status=ToolStatus.AWAITING_APPROVAL, decision="")

    def for_operators(self) -> "ToolEventQuerySet":
        """Calls that wait for a decision, and whose content operators may see."""
        return self.undecided().filter(expires_at__gt=Now(), response__is_stored=True)


class ToolEvent(models.Model):
    """The ledger: a call is stored before it runs, and its result before anything else happens."""

    response = models.ForeignKey(
        "responses_app.Response", on_delete=models.CASCADE, related_name="tool_events"
    )
    call_id = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    arguments = models.TextField(blank=True)
    output = models.TextField(blank=True)
    images = models.TextField(
        blank=True,
        default="",
        db_default="",
        help_text="The images of its output, as a JSON array of data URLs.",
    )
    status = models.CharField(max_length=20, choices=ToolStatus.choices, default=ToolStatus.RUNNING)
    attempt = models.PositiveIntegerField()
    started_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    approval_reason = models.TextField(blank=True, help_text="Why it needs an approval.")
    expires_at = models.DateTimeField(
        null=True, blank=True, help_text="When the wait for an approval ends as a denial."
    )
    # Database defaults: a process of the previous version may still write rows during an upgrade.
    approver = models.CharField(
        max_length=10,
        choices=Approver.choices,
        default=Approver.OPERATOR,
        db_default=Approver.OPERATOR,
        help_text="Who decides about it.",
    )
    can_keep_consent = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Whether a decision may also count for later calls with the same arguments.",
    )
    decision = models.CharField(max_length=10, choices=Decision.choices, blank=True)
    decided_by = models.CharField(max_length=200, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    objects = ToolEventQuerySet.as_manager()

    class Meta:
        permissions = [("decide_toolevent", "Can allow and deny tool calls that wait for approval")]
        constraints = [
            # A call has one row, whatever the attempt: that is what keeps it from running twice.
            models.UniqueConstraint(fields=["response", "call_id"], name="tool_call_is_unique"),
        ]
        indexes = [
            # The admin's newest-first list, and its search.
            models.Index(fields=["-started_at"], name="tool_event_newest"),
            models.Index(fields=["call_id"], name="tool_event_by_call"),
            # Approvals that wait, for operators.
            models.Index(
                fields=["started_at"],
                condition=Q(status=ToolStatus.AWAITING_APPROVAL),
                name="tool_event_waiting",
            ),
            # The dashboard's use of tools over a window of time, read from this index alone.
            models.Index(fields=["started_at", "name", "status"], name="tool_event_by_start"),
            # The admin's list of responses that used a tool, and the names of all tools used.
            models.Index(fields=["name", "response"], name="tool_event_by_name"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.status.replace('_', ' ')})"

    @property
    def is_over(self) -> bool:
        return self.status not in OPEN_CALLS

    @property
    def has_started(self) -> bool:
        return self.status not in UNSTARTED_CALLS

    @property
    def image_urls(self) -> tuple[str, ...]:
        if not self.images:
            return ()
        return tuple(json.loads(self.images))

    @property
    def secs(self) -> float:
        """From its last start to its end."""
        return ((self.finished_at or self.started_at) - self.started_at).total_seconds()


class ApprovalGrantQuerySet(models.QuerySet["ApprovalGrant"]):
    def covers(self, owner_id: int, session_id: int, name: str, digest: str, approver: str) -> bool:
        mine = self.filter(owner_id=owner_id, name=name, arguments_digest=digest)
        if approver == Approver.OPERATOR:
            mine = mine.filter(approver=Approver.OPERATOR)
        return mine.filter(Q(session_id=session_id) | Q(session_id__isnull=True)).exists()


class ApprovalGrant(models.Model):
    """An approval that outlives its call: for the same tool with exactly the same arguments."""

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="approval_grants"
    )
    session = models.ForeignKey(
        "responses_app.Session",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        help_text="Empty means always.",
    )
    name = models.CharField(max_length=200)
    arguments_digest = models.CharField(max_length=64)
    # The ledger has the arguments. They are content: deleting the response erases them there.
    call = models.ForeignKey(
        ToolEvent,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="grants",
        help_text="The call that was approved.",
    )
    granted_by = models.CharField(max_length=200)
    approver = models.CharField(
        max_length=10,
        choices=Approver.choices,
        default=Approver.CLIENT,
        db_default=Approver.CLIENT,
        help_text="Whose approval this is: a client's does not cover calls that operators decide.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ApprovalGrantQuerySet.as_manager()

    class Meta:
        indexes = [
            # covers(), before each call that needs an approval.
            models.Index(
                fields=["owner", "name", "arguments_digest"], name="approval_grant_covers"
            ),
        ]

    def __str__(self) -> str:
        if self.session_id:
            return f"{self.name} (session)"
        return f"{self.name} (always)"


# -- compiled statements ----------------------------------------------------------------
def _open_calls(response_id: str) -> ToolEventQuerySet:
    return ToolEvent.objects.filter(response_id=response_id, status__in=OPEN_CALLS)


_open_calls_update = CompiledUpdate(_open_calls)
