"""``/v1/runs``: the endpoints that answer with plain JSON."""

from django.db.models import Q
from django.http import HttpResponse
from rest_framework.response import Response

from gateway_app.api.runs.payloads import find_run, live_run_payload, run_payload
from gateway_app.api.runs.statuses import RunStatus, runs_of
from responses_app.api.approvals import apply_decision
from responses_app.api.base import ApiRequest, ApiView
from responses_app.api.pagination import IdPagination
from responses_app.api.query_params import read_choice, read_text
from responses_app.models import Response as StoredResponse
from responses_app.protocol.errors import ResponseNotFound, RunNotFound
from responses_app.protocol.ids import response_id_of
from responses_app.requests.headers import SESSION_HEADER, usage_headers
from responses_app.services.lifecycle.cancel import request_cancel
from responses_app.services.lookup import find_response, note_access


class RunPagination(IdPagination):
    def stored_id(self, entry_id: str) -> str:
        return response_id_of(entry_id) or ""


class RunsView(ApiView):
    def get(self, request: ApiRequest) -> Response:
        params = request.query_params
        runs = runs_of(request.user.pk)
        status = read_choice(params, "status", RunStatus)
        session_id = read_text(params, "session_id")
        if status is not None:
            runs = runs.filter(Q(run_status=status))
        if session_id is not None:
            runs = runs.filter(session__public_id=session_id)
        paginator = RunPagination()
        every = StoredResponse.objects.visible_to(request.user.pk)
        rows = paginator.paginate_queryset(runs, request, cursors=every)
        return paginator.get_paginated_response([run_payload(row) for row in rows])


class RunView(ApiView):
    def get(self, request: ApiRequest, run_id: str) -> Response:
        row = find_run(request.user.pk, run_id)
        note_access(row)
        payload = live_run_payload(row, request.auth.decider)
        headers = {SESSION_HEADER: row.session.public_id}
        headers |= usage_headers(is_estimated=row.is_usage_estimated)
        return Response(payload, headers=headers)


class RunEventsView(ApiView):
    """GET is a stream, which a consumer serves."""

    def head(self, request: ApiRequest, run_id: str) -> HttpResponse:
        row = find_run(request.user.pk, run_id)
        headers = {SESSION_HEADER: row.session.public_id}
        return HttpResponse(content_type="text/event-stream; charset=utf-8", headers=headers)


class StopRunView(ApiView):
    def post(self, request: ApiRequest, run_id: str) -> Response:
        row = find_run(request.user.pk, run_id)
        if not row.is_open:
            return Response(run_payload(row))
        request_cancel(row.pk, request.auth.actor).result()
        return Response({"run_id": run_id, "status": str(RunStatus.STOPPING)})


class RunApprovalView(ApiView):
    """Takes the run id of any response, also of one that another endpoint made."""

    def post(self, request: ApiRequest, run_id: str) -> Response:
        try:
            row = find_response(request.user.pk, response_id_of(run_id) or "")
        except ResponseNotFound:
            raise RunNotFound(run_id) from None
        choice, resolved = apply_decision(request, row.pk)
        return Response(
            {
                "object": "hermes.run.approval_response",
                "run_id": run_id,
                "choice": choice,
                "resolved": resolved,
            }
        )
