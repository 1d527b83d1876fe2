from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from responses_app.admin.bidirectional import escaped
from responses_app.admin.dates import DateRangeFilter
from responses_app.admin.filters import ToolNameFilter, WaitingCallFilter
from responses_app.admin.readonly import ReadOnlyAdmin, badge
from responses_app.admin.searching import search_tool_events
from responses_app.admin.timeline import pretty
from responses_app.http.principals import operator_decider
from responses_app.models import ApprovalGrant, Decision, ToolEvent, decisions_for
from responses_app.services.keys import actor_names
from responses_app.services.lifecycle.approvals import ApprovalNotKept, ApprovalNotPending, decide

SHOWN_ARGUMENT_CHARS = 80
# The action of each decision, and its label where there is one call.
BUTTONS = {
    Decision.ONCE: ("allow_once", "Allow once"),
    Decision.SESSION: ("allow_in_session", "Allow for its session"),
    Decision.ALWAYS: ("allow_always", "Allow always"),
    Decision.DENY: ("deny", "Deny"),
}


@admin.register(ToolEvent)
class ToolEventAdmin(ReadOnlyAdmin):
    list_display = (
        "name",
        "arguments_start",
        "state",
        "started_at",
        "took",
        "of_response",
        "decision",
        "decided_by",
        "attempt",
    )
    list_filter = (
        WaitingCallFilter,
        "status",
        "decision",
        ToolNameFilter,
        ("started_at", DateRangeFilter),
    )
    date_hierarchy = "started_at"
    search_fields = ("call_id",)
    search_help_text = "The whole id of a call or of a response."
    list_defer = ("arguments", "output", "images")
    list_annotations = {"first_arguments": Left("arguments", SHOWN_ARGUMENT_CHARS + 1)}
    sortable_by = ("started_at",)
    ordering = ("-started_at",)
    fields = (
        ("of_response", "of_session", "name", "state"),
        ("call_id", "attempt", "started_at", "finished_at", "took"),
        ("approval_reason", "approver", "can_keep_consent", "expires_at"),
        ("decision", "decided_by", "decided_at"),
        "arguments_shown",
        "output_shown",
    )
    readonly_fields = (
        "of_response",
        "of_session",
        "state",
        "took",
        "arguments_shown",
        "output_shown",
    )
    actions = ("allow_once", "allow_in_session", "allow_always", "deny")
    change_form_template = "admin/responses_app/toolevent/change_form.html"

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        """With the decisions that are possible now as buttons."""
        event: ToolEvent = context["original"]
        context["decisions"] = []
        is_waiting = ToolEvent.objects.for_operators().filter(pk=event.pk).exists()
        if is_waiting and self.has_decide_permission(request):
            for decision in decisions_for(can_keep_consent=event.can_keep_consent):
                context["decisions"].append(BUTTONS[decision])
        return super().render_change_form(request, context, *args, **kwargs)

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return search_tool_events(rows, term)

    @admin.display(description="Response")
    def of_response(self, event: ToolEvent) -> str:
        page = reverse("admin:responses_app_response_change", args=[quote(event.response_id)])
        return format_html(
            '<a href="{}" title="{}">{}…</a>', page, event.response_id, event.response_id[:13]
        )

    @admin.display(description="Session")
    def of_session(self, event: ToolEvent) -> str:
        session = event.response.session
        return format_html(
            '<a href="{}">{}</a>',
            reverse("admin:responses_app_session_change", args=[session.pk]),
            session,
        )

    @admin.display(description="Status")
    def state(self, event: ToolEvent) -> str:
        return badge(event.status)

    @admin.display(description="Took")
    def took(self, event: ToolEvent) -> str:
        if event.finished_at is None:
            return "–"
        return f"{(event.finished_at - event.started_at).total_seconds():.2f} s"

    @admin.display(description="Arguments")
    def arguments_start(self, event: Any) -> str:
        """An operator who allows calls in the list sees what they do; the rest is on their pages."""
        return Truncator(escaped(event.first_arguments)).chars(SHOWN_ARGUMENT_CHARS)

    @admin.display(description="Arguments")
    def arguments_shown(self, event: ToolEvent) -> str:
        return format_html("<pre>{}</pre>", pretty(event.arguments))

    @admin.display(description="Output")
    def output_shown(self, event: ToolEvent) -> str:
        return format_html("<pre>{}</pre>", pretty(event.output))

    @admin.action(description="Allow once", permissions=["decide"])
    def allow_once(self, request: HttpRequest, chosen: QuerySet[ToolEvent]) -> HttpResponse | None:
        return self._decide(request, chosen, Decision.ONCE)

    @admin.action(description="Allow for their session", permissions=["decide"])
    def allow_in_session(
        self, request: HttpRequest, chosen: QuerySet[ToolEvent]
    ) -> HttpResponse | None:
        return self._decide(request, chosen, Decision.SESSION)

    @admin.action(description="Allow always", permissions=["decide"])
    def allow_always(
        self, request: HttpRequest, chosen: QuerySet[ToolEvent]
    ) -> HttpResponse | None:
        return self._decide(request, chosen, Decision.ALWAYS)

    @admin.action(description="Deny", permissions=["decide"])
    def deny(self, request: HttpRequest, chosen: QuerySet[ToolEvent]) -> HttpResponse | None:
        return self._decide(request, chosen, Decision.DENY)

    def _decide(
        self, request: HttpRequest, chosen: QuerySet[ToolEvent], decision: Decision
    ) -> HttpResponse | None:
        assert isinstance(request.user, User)
        decider = operator_decider(request.user)
        decided = skipped = one_time = 0
        for event in chosen:
            try:
                decide(event.response_id, decision, decider, call_id=event.call_id)
                decided += 1
            except ApprovalNotPending:
                skipped += 1
            except ApprovalNotKept:
                one_time += 1
        text = f"{decided} decided ({decision})."
        level = messages.SUCCESS
        if skipped:
            text += f" {skipped} skipped: they do not wait for a decision."
            level = messages.WARNING
        if one_time:
            text += f" {one_time} skipped: they can only be allowed once."
            level = messages.WARNING
        self.message_user(request, text, level)
        return self.back(request)


@admin.register(ApprovalGrant)
class ApprovalGrantAdmin(ReadOnlyAdmin):
    """Approvals that last; to delete one revokes it."""

    list_display = ("name", "arguments", "owner", "by", "until", "created_at")
    list_prefetch_related = ("owner", "session", "call")
    ordering = ("-pk",)
    fields = (("name", "owner", "by", "until", "created_at"), "of_call", "arguments_shown")
    readonly_fields = ("by", "until", "of_call", "arguments_shown")

    @admin.display(description="Arguments")
    def arguments(self, grant: ApprovalGrant) -> str:
        return Truncator(escaped(_granted_arguments(grant))).chars(SHOWN_ARGUMENT_CHARS)

    @admin.display(description="Arguments")
    def arguments_shown(self, grant: ApprovalGrant) -> str:
        return format_html("<pre>{}</pre>", pretty(_granted_arguments(grant)))

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """The names of all keys on the page, with one query."""
        changelist = super().get_changelist_instance(request)
        names = actor_names(grant.granted_by for grant in changelist.result_list)
        for grant in changelist.result_list:
            grant.granted_by = names.get(grant.granted_by, grant.granted_by)
        return changelist

    @admin.display(description="Granted by")
    def by(self, grant: ApprovalGrant) -> str:
        return actor_names([grant.granted_by]).get(grant.granted_by, grant.granted_by)

    @admin.display(description="Until")
    def until(self, grant: ApprovalGrant) -> str:
        if grant.session is None:
            return "it is withdrawn"
        page = reverse("admin:responses_app_session_change", args=[grant.session.pk])
        return format_html('session <a href="{}"><bdi>{}</bdi></a> is deleted', page, grant.session)

    @admin.display(description="Call")
    def of_call(self, grant: ApprovalGrant) -> str:
        if grant.call is None:
            return "–"
        page = reverse("admin:responses_app_toolevent_change", args=[grant.call.pk])
        return format_html('<a href="{}">{}</a>', page, grant.call.call_id)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)


def _granted_arguments(grant: ApprovalGrant) -> str:
    """From the ledger, so that they go with the content of the response."""
    if grant.call is None or not grant.call.arguments:
        return f"deleted with their response; digest {grant.arguments_digest}"
    return grant.call.arguments
