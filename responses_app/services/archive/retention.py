"""Retention: which responses may go.

A response may go only when every later turn of its chain goes too, so the ends of chains go first.
The responses of a conversation stay as long as the conversation does: it must keep its history.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from responses_app.models import Conversation, Response, ResponseQuerySet, Session

LOOKUP_ROWS = 500  # ids in one statement


@dataclass(frozen=True)
class Rules:
    """What may go: responses that are too old, and the least used beyond a number to keep."""

    created_before: datetime | None = None
    keep: int | None = None
    statuses: tuple[str, ...] = ()
    owner_id: int | None = None

    def within(self) -> ResponseQuerySet:
        rows = Response.objects.all()
        if self.owner_id is not None:
            rows = rows.filter(owner_id=self.owner_id)
        if self.statuses:
            rows = rows.filter(status__in=self.statuses)
        return rows

    def kept(self) -> ResponseQuerySet:
        """What counts towards the number to keep: stored responses that were not deleted."""
        return self.within().filter(is_stored=True, deleted_at__isnull=True)


def configured_rules() -> Rules | None:
    """The rules of the settings; None when they set no limit."""
    days, keep = settings.HERMES_RETENTION_DAYS, settings.HERMES_MAX_STORED_RESPONSES
    if not days and not keep:
        return None
    created_before = None
    if days:
        created_before = days_ago(days)
    return Rules(created_before=created_before, keep=keep or None)


def days_ago(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


def excess(rules: Rules) -> int:
    """How many responses are beyond the number to keep."""
    if rules.keep is None:
        return 0
    return max(0, rules.kept().count() - rules.keep)


@dataclass(frozen=True)
class Selection:
    """All that the rules select at one moment, also what has to stay for other rows.

    The limit of the least used is fixed once: several processes that prune at a time remove the
    same rows, and not more.
    """

    rules: Rules
    last_unused: tuple[datetime, str] | None  # when it was used last, and its id

    def old(self) -> ResponseQuerySet:
        if self.rules.created_before is None:
            return Response.objects.none()
        return self.rules.within().filter(created_at__lt=self.rules.created_before)

    def unused(self) -> ResponseQuerySet:
        if self.last_unused is None:
            return Response.objects.none()
        accessed_at, pk = self.last_unused
        return self.rules.kept().filter(
            ~Q(accessed_at=accessed_at, pk__gt=pk), accessed_at__lte=accessed_at
        )

    def rows(self) -> ResponseQuerySet:
        return self.old() | self.unused()


def select(rules: Rules) -> Selection:
    """Costs a count in an index, and a walk over as many entries as are too many."""
    too_many = excess(rules)
    if not too_many:
        return Selection(rules, None)
    least_used = rules.kept().order_by("accessed_at", "pk").values_list("accessed_at", "pk")
    return Selection(rules, least_used[too_many - 1 : too_many].first())


def free(rows: ResponseQuerySet) -> ResponseQuerySet:
    """Of these, the ones that only a later turn could need."""
    unused_fork = Session.objects.filter(fork_point=OuterRef("pk"), turn_count=0)
    # Not "conversation IS NULL": SQLite would walk over all such rows in that index.
    conversation = Conversation.objects.filter(pk=OuterRef("conversation_id"))
    return rows.filter(~Exists(unused_fork), ~Exists(conversation), finished_at__isnull=False)


@dataclass(frozen=True)
class Plan:
    found: int
    held: int

    @property
    def removable(self) -> int:
        return self.found - self.held


def plan(rows: ResponseQuerySet) -> Plan:
    """What a run would do; it takes memory for what has to stay, not for all that is stored."""
    candidates = free(rows)
    going = candidates.filter(pk=OuterRef("pk"))
    held = set(rows.filter(~Exists(going)).values_list("pk", flat=True))
    staying = Response.objects.filter(previous__isnull=False).filter(~Exists(going))
    above = set(
        candidates.filter(pk__in=staying.values("previous_id")).values_list("pk", flat=True)
    )
    while above:
        held |= above
        parents: set[str | None] = set()
        for chunk in _chunks(above):
            parents.update(
                Response.objects.filter(pk__in=chunk).values_list("previous_id", flat=True)
            )
        above = set[str]()
        for chunk in _chunks(parents - {None}):
            above.update(candidates.filter(pk__in=chunk).values_list("pk", flat=True))
        above -= held
    return Plan(found=rows.count(), held=len(held))


def _chunks(ids: Iterable[str | None]) -> Iterator[list[str | None]]:
    listed = list(ids)
    for start in range(0, len(listed), LOOKUP_ROWS):
        yield listed[start : start + LOOKUP_ROWS]
