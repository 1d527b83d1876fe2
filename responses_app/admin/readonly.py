from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from responses_app.admin.paging import KeysetChangeList
from responses_app.admin.strict import StrictAdmin
from responses_app.admin.times import ReaderTimes


def badge(status: str) -> str:
    return format_html('<span class="hs-state hs-{}">{}</span>', status, status.replace("_", " "))


class ReadOnlyAdmin(ReaderTimes, StrictAdmin):
    """Shows rows of a table of any size, and changes nothing."""

    change_list_template: ClassVar[str | None] = "admin/responses_app/change_list.html"
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER  # each would count the whole table
    list_per_page = 50
    # Not joined: SQLite would start from the joined table and sort everything.
    list_select_related = ()
    list_prefetch_related: ClassVar[tuple[str, ...]] = ()
    list_defer: ClassVar[tuple[str, ...]] = ()  # large columns that no list shows
    list_annotations: ClassVar[dict[str, Any]] = {}
    sortable_by: ClassVar[Any] = ()  # sorting by what has no index would read the whole table

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)
        match = request.resolver_match
        if match is None or not str(match.url_name).endswith("_changelist"):
            return rows
        rows = rows.prefetch_related(*self.list_prefetch_related).defer(*self.list_defer)
        shown: QuerySet[Any] = rows.annotate(**self.list_annotations)
        return shown

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Also by an id as the API prints it: Django reads `_25` in an address as an escaped `%`."""
        found = super().get_object(request, object_id, from_field)
        return found or super().get_object(request, quote(object_id), from_field)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip().replace("\0", "")
        if term:
            queryset = self.search(queryset, term)
        return queryset, False

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        """By an index: a search for parts of words would read the whole table."""
        return rows.none()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        context |= {
            "may_operate": self.has_operate_permission(request),
            "may_erase": self.has_erase_permission(request),
        }
        return super().render_change_form(request, context, *args, **kwargs)

    def back(self, request: HttpRequest) -> HttpResponse | None:
        """To the page whose button ran the action; None leads to the list."""
        key = request.POST.get("_back")
        if not key:
            return None
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_change"
        return HttpResponseRedirect(reverse(name, args=[quote(key)]))

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """To act on rows; the permission to view them is another one."""
        return request.user.has_perm("responses_app.change_response")

    def has_view_responses_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("responses_app.view_response")

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("responses_app.decide_toolevent")

    def has_erase_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("responses_app.delete_response")
