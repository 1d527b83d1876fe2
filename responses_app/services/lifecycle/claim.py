"""Claim: take a response as its next attempt, and find the end of its log."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from responses_app.eventlog import AdmittedRequest, Numbering, Segment, read_last
from responses_app.models import Response, ResponseQuerySet
from responses_app.models.compiled import CompiledQuery

PROCESS_ID = secrets.token_hex(8)  # the owner of the leases that this process holds

FIELDS = (
    "id",
    "attempt",
    "created_at",
    "kind",
    "status",
    "model",
    "request",
    "ignored",
    "is_stored",
    "previous_id",
    "cancel_requested_at",
    "crashes",
    "tool_items",
    "client_tools",
    "approvals",
    "reasoning_form",
    "session_id",
    "conversation_id",
    "is_history_resent",
    "owner_id",
    "requested_by",
)


@dataclass(frozen=True)
class FreshTurn:
    """What the admission of a turn knows: it is not read again."""

    opening: Segment
    request: AdmittedRequest
    session_instructions: str
    notes: dict[str, list[str]]  # by kind


@dataclass(frozen=True)
class Claimed:
    row: Response
    numbering: Numbering
    fresh: FreshTurn | None = None  # of a turn that was claimed as it was admitted


def lease() -> timedelta:
    return timedelta(seconds=settings.HERMES_LEASE_SECS)


def claim(response_id: str) -> Claimed | None:
    """In the writer: the claimed row, or None when it can't be claimed."""
    before = Response.objects.filter(pk=response_id).values_list("attempt", flat=True).first()
    if before is None or not Response.objects.claim(response_id, before, PROCESS_ID, lease()):
        return None
    row = Response.objects.only(*FIELDS).get(pk=response_id)
    # From here on no older attempt can append.
    numbering = Numbering(response_id, row.attempt)
    last = read_last(response_id)
    if last is not None:
        numbering.follow(last)
    return Claimed(row, numbering)


def claim_columns() -> dict[str, Any]:
    """The columns of a row that is claimed as it is stored."""
    return {
        "attempt": 1,
        "lease_owner": PROCESS_ID,
        "lease_until": Now() + lease(),
        "started_at": Now(),
    }


def claimable_ids(
    limit: int, full_owners: Sequence[int] = (), *, is_any: bool = True
) -> list[tuple[str, int]]:
    """For the sweep: the oldest rows that wait for a process, with their owners.

    Those of full owners are left out: thousands of them may be older than the first that can start.
    Unless ``is_any``, only unstored ones are found: other processes claim the others.
    """
    rows = _claimable().exclude(owner_id__in=full_owners)
    if not is_any:
        rows = rows.filter(is_stored=False)
    return list(rows.order_by("created_at").values_list("pk", "owner_id")[:limit])


def has_expired(live: QuerySet[Any, str]) -> bool:
    """For the sweep: a lease ran out, and its owner is none of the live ones."""
    return Response.objects.expired().exclude(lease_owner__in=live).exists()


def next_in_session(session_id: int) -> str | None:
    """The turn that may start now that another of its session has ended."""
    found: str | None = _next_in_session.first(session_id, PROCESS_ID)
    return found


def _claimable_in(session_id: int, process_id: str) -> QuerySet[Response, Any]:
    rows = Response.objects.claimable(process_id).filter(session_id=session_id)
    return rows.order_by("turn").values_list("pk")[:1]


_next_in_session = CompiledQuery(_claimable_in)


def _claimable() -> ResponseQuerySet:
    return Response.objects.claimable(PROCESS_ID)
