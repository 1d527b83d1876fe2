"""Survey: what a sweep has to do. It costs next to nothing while nothing happens."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from responses_app.models import IdempotencyKey, Response
from responses_app.models.compiled import CompiledQuery
from responses_app.services.lifecycle.housekeeping import TIDY_AFTER


@dataclass(frozen=True)
class Survey:
    has_open: bool  # there are responses that have not ended
    is_untidy: bool  # ended responses wait to be merged or erased, or keys to be forgotten


def survey() -> Survey:
    now = timezone.now()
    ended_at = _first_unmerged.first()
    expires_at = _first_key.first()
    is_unmerged = ended_at is not None and ended_at < now - TIDY_AFTER
    has_expired = expires_at is not None and expires_at <= now
    return Survey(has_open_responses(), is_unmerged or has_expired)


def has_open_responses() -> bool:
    return _first_open.first() is not None


def _open() -> QuerySet[Response, Any]:
    return Response.objects.open().values_list("pk")[:1]


def _unmerged() -> QuerySet[Response, Any]:
    ended = Response.objects.filter(is_log_merged=False, finished_at__isnull=False)
    return ended.order_by("finished_at").values_list("finished_at")[:1]


def _keys() -> QuerySet[IdempotencyKey, Any]:
    return IdempotencyKey.objects.order_by("expires_at").values_list("expires_at")[:1]


_first_open = CompiledQuery(_open)
_first_unmerged = CompiledQuery(_unmerged)
_first_key = CompiledQuery(_keys)
