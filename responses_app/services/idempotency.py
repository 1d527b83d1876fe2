"""The same request, sent again, is the same response."""

from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from responses_app.database import database
from responses_app.eventlog import Tail, current_body
from responses_app.eventlog.store import event_store
from responses_app.models import RETRY_LIFETIME, IdempotencyKey, Response
from responses_app.models.compiled_insert import CompiledInsert
from responses_app.protocol.errors import (
    IdempotencyKeyReused,
    IdempotentResultNotStored,
    ResponseDeleted,
)
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.snapshot import fold
from responses_app.protocol.sse import decode_frames
from responses_app.protocol.status import OPEN, OnDisconnect, Status
from responses_app.services.lifecycle.claim import process_id

_key_insert = CompiledInsert(IdempotencyKey)
FORGET_AT_ONCE = 1000  # rows in one transaction, so that appends don't wait long for it


@dataclass(frozen=True)
class RequestIdentity:
    """What makes two requests of an owner the same one."""

    digest: str
    key: str | None = None  # from Idempotency-Key
    is_retry: bool = False  # the SDK marks it as a retry


@dataclass(frozen=True)
class Joined:
    """The response of an earlier request, and its tail if this process has one."""

    row: Response
    tail: Tail | None

    async def body(self) -> ResponseBody:
        """As it is now."""
        if not self.row.is_stored:
            assert self.tail is not None
            return fold(decode_frames(segment.data for segment in self.tail.whole()))
        body = await database.read(current_body, self.row.pk)
        if body is None:
            raise ResponseDeleted(self.row.pk)
        return body


def join_or_note(owner_id: int, identity: RequestIdentity, response_id: str) -> Joined | None:
    """The response of an earlier request with this identity; None for the first, which is noted.

    Runs in the transaction of the admission: a refused request leaves no trace, and of many
    concurrent requests one is the first.
    """
    if identity.key is not None:
        found = IdempotencyKey.objects.reserve(owner_id, identity.key, identity.digest, response_id)
        if found.response_id == response_id:
            return None
        if found.digest and found.digest != identity.digest:
            raise IdempotencyKeyReused(identity.key)
        row = Response.objects.select_related("session").get(pk=found.response_id)
        return _join(row, response_id)
    if not settings.HERMES_JOIN_RETRIES:
        return None
    if identity.is_retry:
        retried = _retried(owner_id, identity)
        if retried is not None:
            return _join(retried, response_id)
    expires_at = timezone.now() + RETRY_LIFETIME
    noted = _key_insert.new(
        owner_id=owner_id, digest=identity.digest, response_id=response_id, expires_at=expires_at
    )
    _key_insert.insert(noted)
    return None


def _retried(owner_id: int, identity: RequestIdentity) -> Response | None:
    """The response to join: never one that failed or was cancelled, for that is why an SDK retries."""
    same = IdempotencyKey.objects.current().filter(
        owner_id=owner_id, digest=identity.digest, key__isnull=True
    )
    rows = same.exclude(response__status__in=(Status.FAILED, Status.CANCELLED)).filter(
        response__cancel_requested_at__isnull=True, response__deleted_at__isnull=True
    )
    newest = rows.select_related("response__session").order_by("-created_at").first()
    if newest is None:
        return None
    if newest.response.is_stored or _runs_here(newest.response):
        return newest.response
    return None


def _join(row: Response, reader: str) -> Joined:
    if row.deleted_at is not None:
        raise ResponseDeleted(row.pk)
    tail = event_store.tails.find(row.pk)
    if not row.is_stored and (tail is None or not _runs_here(row)):
        raise IdempotentResultNotStored
    if tail is not None and tail.clients:
        tail.clients.add(reader)
    elif row.on_disconnect == OnDisconnect.CANCEL:
        # Its first client is connected to another process, which does not know this client.
        Response.objects.filter(pk=row.pk).update(on_disconnect=OnDisconnect.CONTINUE)
    return Joined(row, tail)


def _runs_here(row: Response) -> bool:
    is_wanted = row.status in OPEN and row.cancel_requested_at is None
    return is_wanted and row.lease_owner == process_id()


def forget_content(response_id: str) -> None:
    """Drop the hash of the request when the content is deleted; its key still finds the response."""
    noted = IdempotencyKey.objects.filter(response_id=response_id)
    noted.filter(key__isnull=True).delete()
    noted.update(digest="")


def has_expired() -> bool:
    return IdempotencyKey.objects.expired().exists()


def forget_expired() -> list[str]:
    """Delete the oldest expired keys; returns the ids of their responses."""
    oldest = IdempotencyKey.objects.expired().order_by("expires_at")
    forgotten = dict(oldest.values_list("pk", "response_id")[:FORGET_AT_ONCE])
    IdempotencyKey.objects.filter(pk__in=list(forgotten)).delete()
    return list(forgotten.values())
