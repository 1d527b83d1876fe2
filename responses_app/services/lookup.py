"""Find a response for its owner."""

from typing import Any

from django.db.models import QuerySet

from responses_app.eventlog import LogFormatNotSupported
from responses_app.eventlog.store import event_store
from responses_app.models import Kind, Response
from responses_app.models.compiled import CompiledQuery
from responses_app.models.response_queries import newest_format
from responses_app.models.segments import FORMAT_VERSION
from responses_app.protocol.errors import ResponseDeleted, ResponseNotFound


def find_response(owner_id: int, response_id: str, *, must_be_stored: bool = True) -> Response:
    """Another owner's response, or one that was not stored, does not exist."""
    if must_be_stored:
        rows = Response.objects.visible_to(owner_id)
    else:
        rows = Response.objects.filter(owner_id=owner_id).exclude(kind=Kind.COMPACTION)
    return _found(rows, response_id)


def find_session_of_log(owner_id: int, response_id: str) -> str:
    """The public id of its session. For streams, which can't report an error once they have begun."""
    found: list[tuple[Any, ...]] = []
    if response_id.isprintable():  # PostgreSQL refuses to look for a NUL
        found = _log.rows(owner_id, response_id)
    if not found:
        raise ResponseNotFound(response_id)
    [(session_id, deleted_at, format_version)] = found
    if deleted_at is not None:
        raise ResponseDeleted(response_id)
    if format_version > FORMAT_VERSION:
        raise LogFormatNotSupported(response_id)
    return str(session_id)


def any_response(response_id: str, *, must_be_stored: bool = True) -> Response:
    """For operators: the response of any owner."""
    rows = Response.objects.select_related("owner")
    if must_be_stored:
        rows = rows.filter(is_stored=True)
    return _found(rows, response_id)


def any_log(response_id: str) -> Response:
    """For operators: the log of any owner, for a stream."""
    row = any_response(response_id)
    if Response.objects.filter(pk=row.pk).in_newer_format().exists():
        raise LogFormatNotSupported(row.pk)
    return row


def _found(visible: QuerySet[Response], response_id: str) -> Response:
    row = None
    if response_id.isprintable():  # PostgreSQL refuses to look for a NUL
        row = visible.select_related("session").filter(pk=response_id).first()
    if row is None:
        raise ResponseNotFound(response_id)
    if row.deleted_at is not None:
        raise ResponseDeleted(response_id)
    return row


def owner_of(response_id: str) -> int:
    return Response.objects.values_list("owner_id", flat=True).get(pk=response_id)


def note_access(row: Response) -> None:
    """Reading keeps a response from being evicted, and from being stopped as unattended."""
    event_store.note_access(row.pk)


def _log_of(owner_id: int, response_id: str) -> QuerySet[Response, Any]:
    row = Response.objects.visible_to(owner_id).filter(pk=response_id)
    return row.values_list("session__public_id", "deleted_at", newest_format())


_log = CompiledQuery(_log_of)
