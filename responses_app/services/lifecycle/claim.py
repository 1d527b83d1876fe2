"""Claim: take a response as its next attempt, and find the end of its log."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from responses_app.eventlog import Numbering, read_last
from responses_app.models import Response, ResponseQuerySet

PROCESS_ID = secrets.token_hex(8)  # the owner of the leases that this process holds

FIELDS = (
    "id",
    "attempt",
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
    "reasoning_form",
    "session_id",
    "conversation_id",
    "is_history_resent",
    "owner_id",
    "requested_by",
)


@dataclass(frozen=True)
class Claimed:
    row: Response
    numbering: Numbering


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


def claimable_ids(limit: int, full_owners: Sequence[int] = ()) -> list[tuple[str, int]]:
    """For the sweep: the oldest rows that wait for a process, with their owners.

    Those of full owners are left out: thousands of them may be older than the first that can start.
    """
    rows = _claimable().exclude(owner_id__in=full_owners)
    return list(rows.order_by("created_at").values_list("pk", "owner_id")[:limit])


def has_expired(live: QuerySet[Any, str]) -> bool:
    """For the sweep: a lease ran out, and its owner is none of the live ones."""
    return Response.objects.expired().exclude(lease_owner__in=live).exists()


def next_in_session(session_id: int) -> str | None:
    """The turn that may start now that another of its session has ended."""
    return (
        _claimable()
        .filter(session_id=session_id)
        .order_by("turn")
        .values_list("pk", flat=True)
        .first()
    )


def _claimable() -> ResponseQuerySet:
    return Response.objects.claimable(PROCESS_ID)
