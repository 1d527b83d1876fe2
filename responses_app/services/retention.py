"""Retention: which responses may go, and how they go.

A response goes only when everything that was said behind it goes too, so the ends of chains go
first. What belongs to a conversation stays as long as the conversation does: its name must keep
leading to its history.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from responses_app.eventlog import event_store
from responses_app.models import Conversation, Response, Session
from responses_app.models.responses import ResponseQuerySet
from responses_app.states import TERMINAL

BATCH_ROWS = 100  # one transaction's worth: a live server must not wait long for it
LOOKUP_ROWS = 500  # ids in one statement


@dataclass(frozen=True)
class Rules:
    """What may go: whatever is too old, and what was used least beyond a number to keep."""

    created_before: datetime | None = None
    keep: int | None = None
    statuses: tuple[str, ...] = ()
    owner_id: int | None = None

    def within(self) -> ResponseQuerySet:
        rows = Response.objects.all()
        if self.owner_id is not None:
            rows = rows.filter(owner_id=self.owner_id)
        return rows.filter(status__in=self.statuses) if self.statuses else rows

    def kept(self) -> ResponseQuerySet:
        """What counts towards the number to keep: not tombstones, nor what never had content."""
        return self.within().filter(is_stored=True, deleted_at__isnull=True)


def standing_rules() -> Rules | None:
    """Those of the settings; None when they say nothing."""
    days, keep = settings.HERMES_RETENTION_DAYS, settings.HERMES_MAX_STORED_RESPONSES
    if not days and not keep:
        return None
    return Rules(created_before=days_ago(days) if days else None, keep=keep or None)


def days_ago(days: float) -> datetime:
    return timezone.now() - timedelta(days=days)


def qualifying(rules: Rules) -> ResponseQuerySet:
    """Everything the rules are about, also what has to stay for the sake of something else."""
    wanted = Q(pk__in=[])
    if rules.created_before is not None:
        wanted |= Q(created_at__lt=rules.created_before)
    if rules.keep is not None:
        newest_to_go = rules.kept().order_by("-accessed_at", "-pk").values_list("accessed_at", "pk")
        for accessed_at, pk in newest_to_go[rules.keep : rules.keep + 1]:
            older = Q(accessed_at__lt=accessed_at) | Q(accessed_at=accessed_at, pk__lte=pk)
            wanted |= older & Q(is_stored=True, deleted_at__isnull=True)
    if rules.created_before is None and rules.keep is None:
        wanted = Q()
    return rules.within().filter(wanted)


def _free(rows: ResponseQuerySet) -> ResponseQuerySet:
    """Of these, the ones that nothing but a later turn could need."""
    unused_fork = Session.objects.filter(fork_point=OuterRef("pk"), turn_count=0)
    return rows.filter(~Exists(unused_fork), status__in=TERMINAL, conversation__isnull=True)


@dataclass(frozen=True)
class Plan:
    found: int
    held: int

    @property
    def removable(self) -> int:
        return self.found - self.held


def plan(rules: Rules) -> Plan:
    """What a run would do; the memory it takes grows with what has to stay, not with what is stored."""
    rows = qualifying(rules)
    free = _free(rows)
    going = free.filter(pk=OuterRef("pk"))
    held = set(rows.filter(~Exists(going)).values_list("pk", flat=True))
    staying = Response.objects.filter(previous__isnull=False).filter(~Exists(going))
    above = set(free.filter(pk__in=staying.values("previous_id")).values_list("pk", flat=True))
    while above:
        held |= above
        parents: set[str | None] = set()
        for chunk in _chunks(above):
            parents.update(Response.objects.filter(pk__in=chunk).values_list("previous_id", flat=True))
        above = set[str]()
        for chunk in _chunks(parents - {None}):
            above.update(free.filter(pk__in=chunk).values_list("pk", flat=True))
        above -= held
    return Plan(found=rows.count(), held=len(held))


def _chunks(ids: Iterable[str | None]) -> Iterator[list[str | None]]:
    listed = list(ids)
    for start in range(0, len(listed), LOOKUP_ROWS):
        yield listed[start : start + LOOKUP_ROWS]


def prune_some(rules: Rules, limit: int = BATCH_ROWS) -> int:
    """Remove at most so many responses, ends of chains first; 0 when nothing more may go."""
    rows = qualifying(rules)
    return prune(rows, find_ends(rows, limit), limit)


def find_ends(rows: ResponseQuerySet, limit: int) -> list[str]:
    """Those that go first: nothing continues them."""
    ends = _free(rows).filter(~Exists(_children()))
    return list(ends.order_by("accessed_at", "pk").values_list("pk", flat=True)[:limit])


def prune(rows: ResponseQuerySet, ends: list[str], limit: int) -> int:
    """Remove these ends and what they leave at the ends of their chains, in the caller's transaction.

    Rows that somebody else works with are passed over.
    """
    free = _free(rows)
    chosen: list[str] = []
    level = _locked(free.filter(~Exists(_children()), pk__in=ends), limit)
    while level:
        # Seen anew after the lock: a turn that was stored meanwhile keeps what is before it.
        continued = _continued([*chosen, *level])
        chosen += [pk for pk in level if pk not in continued]
        before = Response.objects.filter(pk__in=level, previous__isnull=False).values("previous_id")
        others = _children().exclude(pk__in=chosen)
        level = _locked(free.filter(~Exists(others), pk__in=before), limit - len(chosen))
    if chosen:
        _remove(chosen)
    return len(chosen)


def _children() -> ResponseQuerySet:
    return Response.objects.filter(previous=OuterRef("pk"))


def _locked(rows: ResponseQuerySet, limit: int) -> list[str]:
    if limit <= 0:
        return []
    return list(rows.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)[:limit])


def _continued(ids: list[str]) -> set[str | None]:
    later = Response.objects.filter(previous__in=ids).exclude(pk__in=ids)
    return set(later.values_list("previous_id", flat=True))


def _remove(ids: list[str]) -> None:
    sessions = set(Response.objects.filter(pk__in=ids).values_list("session_id", flat=True))
    Response.objects.filter(pk__in=ids).only("pk").delete()
    idle = Session.objects.select_for_update(skip_locked=True).filter(pk__in=sessions)
    locked = list(idle.values_list("pk", flat=True))
    emptied = Session.objects.filter(
        ~Exists(Response.objects.filter(session=OuterRef("pk"))),
        ~Exists(Conversation.objects.filter(session=OuterRef("pk"))),
        pk__in=locked,
    )
    emptied.delete()


def excess(rules: Rules) -> int:
    """By how many the number to keep is still exceeded."""
    return 0 if rules.keep is None else max(0, rules.kept().count() - rules.keep)


async def evict_some() -> int:
    """A small step of what the settings ask for; only the removal itself takes the writer's time."""
    rules = standing_rules()
    if rules is None:
        return 0
    rows = await event_store.read(qualifying, rules)
    ends = await event_store.read(find_ends, rows, BATCH_ROWS)
    return await event_store.write(lambda: prune(rows, ends, BATCH_ROWS)) if ends else 0
