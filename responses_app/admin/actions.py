"""The operators' actions on responses. Each calls a service and reports what it skipped."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import cast

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from responses_app.admin.readonly import ReadOnlyAdmin
from responses_app.database import database
from responses_app.http.principals import operator_actor
from responses_app.models import Response, Session
from responses_app.protocol.errors import ApiError
from responses_app.services.archive.export import json_lines
from responses_app.services.archive.records import Selection
from responses_app.services.history.fork import fork_after
from responses_app.services.lifecycle.cancel import request_cancel
from responses_app.services.lifecycle.delete import delete_response
from responses_app.services.lifecycle.retry import retry_response

MAX_CHOSEN = 1000  # a browser gives up on more; the commands have no limit

# Returns a link to what it made, or nothing; raises ApiError where the response can't be acted on.
Step = Callable[[Response, User], str]


class ResponseActions(ReadOnlyAdmin):
    """Actions on responses, for their own page and for that of their sessions."""

    actions: Sequence[str] = ("cancel", "retry", "fork", "erase", "export")

    def chosen_responses(self, chosen: QuerySet, action: str) -> QuerySet[Response]:
        return cast("QuerySet[Response]", chosen)

    @admin.action(description="Cancel", permissions=["operate"])
    def cancel(self, request: HttpRequest, chosen: QuerySet) -> HttpResponse | None:
        return self._each(request, self.chosen_responses(chosen, "cancel"), _cancel, "cancelled")

    @admin.action(description="Try again, as new responses", permissions=["operate"])
    def retry(self, request: HttpRequest, chosen: QuerySet) -> HttpResponse | None:
        return self._each(request, self.chosen_responses(chosen, "retry"), _retry, "tried again")

    @admin.action(description="Fork: a new session after each", permissions=["operate"])
    def fork(self, request: HttpRequest, chosen: QuerySet) -> HttpResponse | None:
        return self._each(request, self.chosen_responses(chosen, "fork"), _fork, "forked")

    @admin.action(description="Delete their content", permissions=["erase"])
    def erase(self, request: HttpRequest, chosen: QuerySet) -> HttpResponse | None:
        if "confirmed" in request.POST:
            return self._each(request, self.chosen_responses(chosen, "erase"), _erase, "deleted")
        ids = self._ids(request, self.chosen_responses(chosen, "erase"))
        if not ids:
            return None
        rows = Response.objects.filter(pk__in=ids).only("pk", "status", "created_at")
        context = self.admin_site.each_context(request)
        context["opts"] = self.opts
        context["title"] = "Delete content?"
        context["rows"] = rows.order_by("created_at")
        context["chosen"] = request.POST.getlist("_selected_action")
        context["select_across"] = request.POST.get("select_across", "0")
        return TemplateResponse(request, "admin/responses_app/confirm_erase.html", context)

    @admin.action(description="Export as JSON lines", permissions=["view_responses"])
    def export(
        self, request: HttpRequest, chosen: QuerySet
    ) -> HttpResponse | StreamingHttpResponse | None:
        ids = self._ids(request, self.chosen_responses(chosen, "export"))
        if not ids:
            return None
        name = f"responses-{timezone.now():%Y%m%d-%H%M%S}.jsonl"
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
        }
        lines = _read_in_threads(json_lines(Selection(ids=tuple(ids))))
        return StreamingHttpResponse(lines, content_type="application/jsonl", headers=headers)

    # -- steps --------------------------------------------------------------------------
    def _each(
        self, request: HttpRequest, chosen: QuerySet[Response], step: Step, verb: str
    ) -> HttpResponse | None:
        if not isinstance(request.user, User):
            raise PermissionDenied
        done: list[str] = []
        skipped: list[str] = []
        for response_id in self._ids(request, chosen):
            rows = Response.objects.only("pk", "owner_id", "status", "deleted_at", "is_stored")
            row = rows.get(pk=response_id)
            try:
                done.append(step(row, request.user))
            except ApiError as error:
                skipped.append(f"{row.pk}: {error.message}")
        if done:
            lines = [(f"{len(done)} {verb}.",)]
            lines.extend((link,) for link in done if link)
            self.message_user(request, format_html_join(" ", "{}", lines), messages.SUCCESS)
        if skipped:
            self.message_user(
                request, f"{len(skipped)} skipped. {' '.join(skipped[:10])}", messages.WARNING
            )
        return self.back(request)

    def _ids(self, request: HttpRequest, chosen: QuerySet[Response]) -> list[str]:
        ids = list(chosen.order_by("created_at").values_list("pk", flat=True)[: MAX_CHOSEN + 1])
        if len(ids) > MAX_CHOSEN:
            text = (
                f"That is more than {MAX_CHOSEN} responses; nothing was done. "
                "Choose fewer, or use a command."
            )
            self.message_user(request, text, messages.ERROR)
            return []
        return ids


def _cancel(row: Response, actor: User) -> str:
    if not request_cancel(row.pk, operator_actor(actor.get_username()), actor).result():
        raise ApiError("it has ended, or is being cancelled.")
    return ""


def _retry(row: Response, actor: User) -> str:
    again = retry_response(row.pk, actor)
    page = reverse("admin:responses_app_response_change", args=[quote(again)])
    return format_html('New: <a href="{}">{}</a>.', page, again)


def _fork(row: Response, actor: User) -> str:
    fork: Session = fork_after(row.pk, row.owner_id, actor=actor)
    page = reverse("admin:responses_app_session_change", args=[fork.pk])
    return format_html('New session: <a href="{}">{}</a>.', page, fork.public_id)


def _erase(row: Response, actor: User) -> str:
    if row.deleted_at is not None:
        raise ApiError("its content was deleted before.")
    delete_response(row.pk, actor)
    return ""


async def _read_in_threads(lines: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each line is made in a reader thread, so that the event loop is not blocked."""
    while (line := await database.read(next, lines, None)) is not None:
        yield line
