import asyncio
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import View
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gateway_app.operations import health
from gateway_app.operations.database_probe import TROUBLE, ask
from gateway_app.operations.monitoring.access import (
    Access,
    Watcher,
    WatcherAuthentication,
    access_of,
    no_key,
)
from gateway_app.operations.monitoring.detailed import all_fields, public_fields
from gateway_app.operations.monitoring.remote import UNREACHABLE, probe
from gateway_app.operations.monitoring.status import (
    Local,
    look,
    public_status,
    status,
)
from gateway_app.platforms.states import PlatformReport, platform_reports
from responses_app import metrics
from responses_app.database import database
from responses_app.protocol.errors import ApiError


class DetailedHealthView(APIView):
    authentication_classes = (WatcherAuthentication,)

    def get(self, request: Request) -> Response:
        found = health.look_soon()
        access = _access(request)
        if access is Access.PUBLIC:
            return Response(public_fields(found))
        return Response(all_fields(found, has_owners=access is Access.ALL))


class MetricsView(APIView):
    authentication_classes = (WatcherAuthentication,)

    def get(self, request: Request) -> HttpResponse:
        if _access(request) is Access.PUBLIC:
            raise no_key()
        _measure_now()
        return HttpResponse(generate_latest(), content_type=CONTENT_TYPE_LATEST)


def _access(request: Request) -> Access:
    watcher: Any = request.user
    assert isinstance(watcher, Watcher)
    return watcher.access


def _measure_now() -> None:
    """The metrics that are read when Prometheus asks, and not counted as they happen."""
    metrics.log_lag_seconds.set(database.writer.lag_secs)
    metrics.log_pending_bytes.set(database.writer.pending_bytes)
    unknown = float("nan")
    try:
        work, platforms = ask(_read_counts)
    except TROUBLE:
        age = running = queued = waiting = unknown
    else:
        age = work.oldest_queued_secs or 0.0
        running, queued, waiting = work.running, work.queued, work.awaiting_approval
        _measure_platforms(platforms)
    metrics.queue_age_seconds.set(age)
    for state, count in (("running", running), ("queued", queued), ("awaiting_approval", waiting)):
        metrics.responses_open.labels(state).set(count)


def _read_counts() -> tuple[health.Work, list[PlatformReport]]:
    return health.current_work(), platform_reports()


def _measure_platforms(reports: list[PlatformReport]) -> None:
    for report in reports:
        queues = {
            "inbox": report.inbox_waiting,
            "outbox": report.outbox_waiting,
            "dead": report.dead_letters,
        }
        for queue, count in queues.items():
            metrics.platform_queue.labels(report.name, queue).set(count)


class StatusView(View):
    """Asynchronous: a remote server that does not answer must not hold a thread."""

    async def get(self, request: HttpRequest) -> HttpResponse:
        try:
            access, found, active_sessions = await sync_to_async(_admitted)(request)
        except ApiError as error:
            return JsonResponse(error.body(), status=error.status, headers=error.headers)
        remote = UNREACHABLE
        if found.needs_probe:
            remote = await asyncio.to_thread(probe)
        body = status(found, remote, active_sessions)
        if access is Access.PUBLIC:
            body = public_status(body)
        return JsonResponse(body)


def _admitted(request: HttpRequest) -> tuple[Access, Local, int | None]:
    access = access_of(request)
    found, active_sessions = look()
    return access, found, active_sessions
