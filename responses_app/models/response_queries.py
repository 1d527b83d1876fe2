"""Queries of responses: which are open, claimable or held, and the guarded moves between states."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import models, transaction
from django.db.models import Case, Exists, F, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import Coalesce, Greatest, Now
from django.db.models.lookups import GreaterThan, LessThanOrEqual
from django.utils import timezone

from responses_app.models.compiled import CompiledUpdate
from responses_app.models.compiled_move import CompiledMove
from responses_app.models.segments import FORMAT_VERSION, EventSegment
from responses_app.protocol.status import LEGAL_ORIGINS, TERMINAL, Status

if TYPE_CHECKING:
    from responses_app.models.responses import Response

NOTED_AT_ONCE = 200  # rows in one transaction: an append to one of them waits for it


class Kind(models.TextChoices):
    RESPONSES = "responses"
    CHAT = "chat"
    RUNS = "runs"
    SESSION_CHAT = "session_chat"
    COMPACTION = "compaction"
    PLATFORM = "platform"


def is_held() -> Q:
    """By the database's clock, as everything about leases: the clocks of two hosts differ."""
    return Q(lease_until__gt=Now())


def is_parked() -> Q:
    return Q(parked_until__gt=Now())


def work_states() -> dict[str, Q]:
    """What open responses do: each is in exactly one of these states."""
    return {
        "running": is_held(),
        "awaiting_approval": is_parked() & ~is_held(),
        "queued": ~is_held() & ~is_parked(),
    }


def newest_format() -> Coalesce:
    """The format of the last segment: a version that does not know it appends nothing."""
    log = EventSegment.objects.filter(response=OuterRef("pk")).order_by("-first_position")
    return Coalesce(Subquery(log.values("format_version")[:1]), FORMAT_VERSION)


class ResponseQuerySet(models.QuerySet["Response"]):
    def open(self) -> "ResponseQuerySet":
        # Statuses are bound as parameters: with them SQLite ignores the partial indexes of open rows.
        return self.filter(finished_at__isnull=True)

    def unlocked(self) -> "ResponseQuerySet":
        """Without rows that another session has locked: they must not delay the heartbeat."""
        found = self.select_for_update(skip_locked=True).values_list("pk", flat=True)
        return self.filter(pk__in=list(found))

    def visible_to(self, owner_id: int) -> "ResponseQuerySet":
        """Responses that clients find by id; a compaction is returned only to its own request."""
        return self.filter(owner_id=owner_id, is_stored=True).exclude(kind=Kind.COMPACTION)

    def claimable(self, owner: str) -> "ResponseQuerySet":
        """Not ended, without a lease, its session is free, and this process has what it needs.

        A lease that ran out still counts, because its owner may run: ``release_expired`` decides.
        The request of a response that is not stored is known only to the process that admitted it.
        """
        open_rows = self.model.objects.open()
        earlier = open_rows.filter(session_id=OuterRef("session_id"), turn__lt=OuterRef("turn"))
        # The parent of a fork is in another session.
        parent = open_rows.filter(pk=OuterRef("previous_id"))
        return (
            self.open()
            .in_known_format()
            .filter(
                Q(lease_until__isnull=True),
                ~is_parked() | Q(cancel_requested_at__isnull=False),
                Q(is_stored=True) | Q(lease_owner__in=["", owner]),
                Q(waits_for_turn=False)
                | Q(cancel_requested_at__isnull=False)
                | ~(Exists(earlier) | Exists(parent)),
            )
        )

    def claim(self, response_id: str, attempt: int, owner: str, lease: timedelta) -> bool:
        """Take the row as attempt + 1; False if another process has it or it is not claimable yet.

        The old attempt is compared too: with only the lease in the condition, two PostgreSQL
        workers that both waited for the row lock would both win.
        """
        return _claim(lease).execute(response_id, attempt, owner) == 1

    def renew(self, owner: str, attempts: dict[str, int], lease: timedelta) -> dict[str, bool]:
        """Extend the leases of an owner; returns for each response whether to cancel it.

        A lease that ran out is extended too, as long as no other process has the row.
        """
        mine = self.open().filter(pk__in=list(attempts), lease_owner=owner)
        with transaction.atomic():
            mine.unlocked().update(lease_until=Now() + lease)
        held = mine.values_list("pk", "attempt", "cancel_requested_at")
        is_cancelled: dict[str, bool] = {}
        for response_id, attempt, requested_at in held:
            if attempt == attempts[response_id]:
                is_cancelled[response_id] = requested_at is not None
        return is_cancelled

    def release(self, owners: list[str], *, is_crash: bool) -> int:
        """Free the rows of owners that have ended; an orderly end does not count as a crash."""
        return self.open().filter(lease_owner__in=owners)._free(is_crash=is_crash)

    def release_expired(self, live: models.QuerySet[Any, str]) -> int:
        """Free rows whose lease ran out and belongs to none of the live owners."""
        return self.expired().exclude(lease_owner__in=live)._free(is_crash=True)

    def release_own(self, owner: str, working: list[str]) -> int:
        """Free expired rows that this owner does not work on: their attempts have failed."""
        mine = self.expired().filter(lease_owner=owner).exclude(pk__in=working)
        with transaction.atomic():
            return mine.unlocked()._free(is_crash=True)

    def expired(self) -> "ResponseQuerySet":
        return self.open().filter(lease_until__lt=Now())

    def fail_attempt(self, response_id: str, attempt: int) -> bool:
        """Give the row back after an attempt that failed by itself; it counts as a crash."""
        return self.open().filter(pk=response_id, attempt=attempt)._free(is_crash=True) == 1

    def give_back(self, response_id: str, attempt: int) -> bool:
        """Free a row that another process can go on with; no crash."""
        return self.open().filter(pk=response_id, attempt=attempt)._free(is_crash=False) == 1

    def in_known_format(self) -> "ResponseQuerySet":
        """Without logs of a newer version, which could not read what this one appends."""
        return self.filter(LessThanOrEqual(newest_format(), FORMAT_VERSION))

    def in_newer_format(self) -> "ResponseQuerySet":
        return self.filter(GreaterThan(newest_format(), FORMAT_VERSION))

    def _free(self, *, is_crash: bool) -> int:
        lost = Case(When(lease_until__isnull=False, then=int(is_crash)), default=0)
        return self.update(lease_owner="", lease_until=None, crashes=F("crashes") + lost)

    def lock(self, response_id: str) -> None:
        """Until the commit, no other process changes this row."""
        self.filter(pk=response_id).select_for_update(no_key=True).values_list("pk").first()

    def park(self, response_id: str, attempt: int, until: datetime | None) -> bool:
        """Free the row until an approval; one that is not stored stays with its process."""
        mine = self.open().filter(pk=response_id, attempt=attempt)
        owner = Case(When(is_stored=True, then=models.Value("")), default=F("lease_owner"))
        return mine.update(lease_owner=owner, lease_until=None, parked_until=until) == 1

    def unpark(self, response_id: str) -> None:
        self.open().filter(pk=response_id).update(parked_until=None)

    def note_access(
        self, response_ids: list[str], times: Mapping[str, datetime] | None = None
    ) -> list[str]:
        """Raise ``accessed_at`` to the given times, else to now; returns the ids that were noted.

        A row that another transaction holds is skipped, so that this never waits: two processes
        that note and append in different orders can't block each other.
        """
        noted: list[str] = []
        for start in range(0, len(response_ids), NOTED_AT_ONCE):
            chunk = self.filter(pk__in=response_ids[start : start + NOTED_AT_ONCE])
            with transaction.atomic():
                free = chunk.select_for_update(skip_locked=True, no_key=True)
                locked = list(free.values_list("pk", flat=True))
                if locked:
                    self.filter(pk__in=locked).update(accessed_at=_newest_access(locked, times))
            noted += locked
        return noted

    def accessed_since(
        self, since: datetime, response_ids: list[str]
    ) -> models.QuerySet["Response", str]:
        return self.filter(pk__in=response_ids, accessed_at__gte=since).values_list("pk", flat=True)

    def request_cancel(self, response_id: str, actor: str = "") -> bool:
        waiting = self.open().filter(pk=response_id, cancel_requested_at__isnull=True)
        return waiting.update(cancel_requested_at=timezone.now(), cancel_requested_by=actor) == 1

    def move(self, response_id: str, attempt: int, to: Status, **fields: Any) -> bool:
        """Change the status, fenced by the attempt and only from a legal origin."""
        if to in TERMINAL:
            fields.setdefault("finished_at", timezone.now())
        if not LEGAL_ORIGINS[to]:
            return False
        values = {"status": to, **fields}
        return _moves[to].execute([response_id, attempt], values) == 1


# -- compiled statements ----------------------------------------------------------------
def _make_move(to: Status) -> CompiledUpdate:
    def movable(response_id: str, attempt: int) -> models.QuerySet[Any, Any]:
        responses = apps.get_model("responses_app", "Response").objects
        return responses.filter(pk=response_id, attempt=attempt, status__in=LEGAL_ORIGINS[to])

    return CompiledUpdate(movable)


_moves = {to: _make_move(to) for to in LEGAL_ORIGINS}


@lru_cache(maxsize=8)
def _claim(lease: timedelta) -> CompiledMove:
    def rows(response_id: str, attempt: int, owner: str) -> models.QuerySet[Any, Any]:
        claimable = apps.get_model("responses_app", "Response").objects.claimable(owner)
        mine: models.QuerySet[Any, Any] = claimable.filter(pk=response_id, attempt=attempt)
        return mine

    def values(_response_id: str, _attempt: int, owner: str) -> dict[str, Any]:
        return {
            "attempt": F("attempt") + 1,
            "lease_owner": owner,
            "lease_until": Now() + lease,
            "parked_until": None,
            "started_at": Coalesce(F("started_at"), Now()),
        }

    return CompiledMove(rows, values)


def _newest_access(response_ids: list[str], times: Mapping[str, datetime] | None) -> Greatest:
    """For an update: the noted time of each row, unless the row has a newer one."""
    now = Value(timezone.now(), output_field=models.DateTimeField())
    if times is None:
        return Greatest("accessed_at", now)
    cases = []
    for response_id in response_ids:
        noted_at = Value(times[response_id], output_field=models.DateTimeField())
        cases.append(When(pk=response_id, then=noted_at))
    return Greatest("accessed_at", Case(*cases, default=now))
