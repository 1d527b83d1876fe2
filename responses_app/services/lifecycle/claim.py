"""Claim: take a response as its next attempt, and find the end of its log."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS
from django.db.models import QuerySet
from django.db.models.functions import Now

from responses_app.eventlog import AdmittedRequest, Numbering, read_last
from responses_app.models import Response
from responses_app.models.compiled import CompiledQuery
from responses_app.protocol.events import Event

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
    "turn",
    "conversation_id",
    "is_history_resent",
    "owner_id",
    "requested_by",
)


@cache
def process_id() -> str:
    """The owner of the leases that this process holds.

    It is made at its first use: servers that fork after their imports would have the same one.
    """
    return secrets.token_hex(8)


@dataclass(frozen=True)
class FreshTurn:
    """What the admission of a turn knows: it is not read again."""

    opening: list[Event]
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
    before = _attempt.first(response_id)
    if before is None or not Response.objects.claim(response_id, before, process_id(), lease()):
        return None
    row = _claimed_row(response_id)
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
        "lease_owner": process_id(),
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
    if not full_owners:
        return _oldest_waiting(limit, is_any=is_any).rows(process_id())
    rows = _waiting(process_id(), is_any=is_any).exclude(owner_id__in=full_owners)
    return list(rows[:limit])


def next_in_session(session_id: int) -> str | None:
    """The turn that may start now that another of its session has ended."""
    found: str | None = _next_in_session.first(session_id, process_id())
    return found


def _claimable_in(session_id: int, lease_owner: str) -> QuerySet[Response, Any]:
    rows = Response.objects.claimable(lease_owner).filter(session_id=session_id)
    return rows.order_by("turn").values_list("pk")[:1]


_next_in_session = CompiledQuery(_claimable_in)


def _waiting(lease_owner: str, *, is_any: bool) -> QuerySet[Response, Any]:
    rows = Response.objects.claimable(lease_owner)
    if not is_any:
        rows = rows.filter(is_stored=False)
    return rows.order_by("created_at").values_list("pk", "owner_id")


@lru_cache(maxsize=256)
def _oldest_waiting(limit: int, *, is_any: bool) -> CompiledQuery:
    """A process has as many limits as slots."""

    def oldest(lease_owner: str) -> QuerySet[Response, Any]:
        return _waiting(lease_owner, is_any=is_any)[:limit]

    return CompiledQuery(oldest)


def _attempt_of(response_id: str) -> QuerySet[Response, Any]:
    return Response.objects.filter(pk=response_id).values_list("attempt")


def _fields_of(response_id: str) -> QuerySet[Response, Any]:
    return Response.objects.filter(pk=response_id).values_list(*_columns())


@cache
def _columns() -> list[str]:
    """The fields in the order of the model, in which it takes them."""
    columns = [field.attname for field in Response._meta.concrete_fields]
    return [column for column in columns if column in FIELDS]


def _claimed_row(response_id: str) -> Response:
    [values] = _fields.rows(response_id)
    return Response.from_db(DEFAULT_DB_ALIAS, _columns(), values)


_attempt = CompiledQuery(_attempt_of)
_fields = CompiledQuery(_fields_of)
