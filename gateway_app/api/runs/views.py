"""``/v1/runs``: plain JSON."""

from django.db.models import Q
from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from gateway_app.api.runs.payloads import find_run, live_run_object, run_object
from gateway_app.api.runs.statuses import RunStatus, runs_of
from responses_app.api.approvals import decide_as_asked
from responses_app.api.authentication import owner_of, principal_of
from responses_app.api.pagination import (
    cut,
    envelope,
    read_choice,
    read_page,
    read_word,
)
from responses_app.models import Response
from responses_app.protocol.errors import ResponseNotFound, RunNotFound
from responses_app.protocol.ids import response_id_of
from responses_app.requests.headers import SESSION_HEADER
from responses_app.services.lifecycle.cancel import request_cancel
from responses_app.services.lookup import find_response, note_access


class RunsView(APIView):
    def get(self, request: Request) -> JsonAnswer:
        owner_id, params = owner_of(request), request.query_params
        rows = runs_of(owner_id)
        status = read_choice(params, "status", RunStatus)
        session = read_word(params, "session_id")
        if status is not None:
            rows = rows.filter(Q(run_status=status))
        if session is not None:
            rows = rows.filter(session__public_id=session)
        every = Response.objects.visible_to(owner_id)  # a deleted run still marks its place
        found, has_more = cut(
            rows,
            read_page(params),
            ("created_at", "pk"),
            lambda run_id: every.filter(pk=response_id_of(run_id) or ""),
        )
        return JsonAnswer(envelope([run_object(row) for row in found], has_more=has_more))


class RunView(APIView):
    def get(self, request: Request, run_id: str) -> JsonAnswer:
        row = find_run(owner_of(request), run_id)
        note_access(row)
        return JsonAnswer(
            live_run_object(row, principal_of(request).decider),
            headers={SESSION_HEADER: row.session.public_id},
        )


class RunEventsView(APIView):
    """GET is a stream, which a consumer serves."""

    def head(self, request: Request, run_id: str) -> HttpResponse:
        row = find_run(owner_of(request), run_id)
        headers = {SESSION_HEADER: row.session.public_id}
        return HttpResponse(content_type="text/event-stream; charset=utf-8", headers=headers)


class StopRunView(APIView):
    def post(self, request: Request, run_id: str) -> JsonAnswer:
        row = find_run(owner_of(request), run_id)
        if not row.is_open:
            return JsonAnswer(run_object(row))
        request_cancel(row.pk, principal_of(request).actor).result()
        return JsonAnswer({"run_id": run_id, "status": str(RunStatus.STOPPING)})


class RunApprovalView(APIView):
    """Any response can be decided about under the name of its run."""

    def post(self, request: Request, run_id: str) -> JsonAnswer:
        try:
            row = find_response(owner_of(request), response_id_of(run_id) or "")
        except ResponseNotFound:
            raise RunNotFound(run_id) from None
        choice, resolved = decide_as_asked(request, row.pk)
        said = {"run_id": run_id, "choice": choice, "resolved": resolved}
        return JsonAnswer({"object": "hermes.run.approval_response", **said})
