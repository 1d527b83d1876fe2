"""``GET /v1/responses`` and the input items of a response."""

from django.db.models import QuerySet
from django.http import QueryDict
from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from responses_app.api.authentication import owner_of
from responses_app.api.pagination import (
    cut,
    cut_items,
    envelope,
    read_choice,
    read_page,
    read_word,
)
from responses_app.eventlog import current_body, final_bodies
from responses_app.eventlog.reading import LogFormatNotSupported
from responses_app.models import Response, Session
from responses_app.protocol.ids import location_of_item
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody, initial_body, json_body
from responses_app.protocol.status import Status
from responses_app.services.history.chain import sent_items
from responses_app.services.lookup import find_response, note_access


class ResponsesView(APIView):
    """POST is taken by the streaming door."""

    def get(self, request: Request) -> JsonAnswer:
        owned = Response.objects.visible_to(owner_of(request))
        wanted = _filtered(
            owned.filter(deleted_at__isnull=True), owner_of(request), request.query_params
        )
        # A deleted response still marks its place: a client may delete while it walks the list.
        rows, has_more = cut(
            wanted.only("pk", "status"),
            read_page(request.query_params),
            ("created_at", "pk"),
            lambda response_id: owned.filter(pk=response_id),
        )
        return JsonAnswer(
            envelope([json_body(body) for body in bodies_of(rows)], has_more=has_more)
        )


class InputItemsView(APIView):
    def get(self, request: Request, response_id: str) -> JsonAnswer:
        row = find_response(owner_of(request), response_id)
        note_access(row)
        found, has_more = cut_items(sent_items(row), read_page(request.query_params))
        return JsonAnswer(envelope([shown_item(item) for item in found], has_more=has_more))


def shown_item(item: Item) -> Item:
    """An item as JSON bodies show it; what clients left out of a message is filled in."""
    place = location_of_item(item["id"])
    if place is not None and not place.is_input:
        shown: Item = json_body({"output": [item]})["output"][0]
        return shown
    if item["type"] != "message":
        return item
    return {**item, "content": [_shown_part(part) for part in item["content"]]}


def _shown_part(part: Item) -> Item:
    return {"annotations": [], **part} if part["type"] == "output_text" else part


def _filtered(rows: QuerySet[Response], owner_id: int, params: QueryDict) -> QuerySet[Response]:
    status = read_choice(params, "status", Status)
    session, model = read_word(params, "session"), read_word(params, "model")
    if status is not None:
        rows = rows.filter(status=status)
    if session is not None:
        rows = rows.filter(session__in=Session.objects.filter(owner_id=owner_id, public_id=session))
    if model is not None:
        rows = rows.filter(model=model)
    return rows


def bodies_of(rows: list[Response]) -> list[ResponseBody]:
    """Those that have ended with one query for all; one that was deleted in this moment is left out."""
    ended = [row.pk for row in rows if not row.is_open]
    known = final_bodies(ended)
    bodies = [known.get(row.pk) or _open_body(row) for row in rows]
    return [body for body in bodies if body is not None]


def _open_body(row: Response) -> ResponseBody | None:
    try:
        return current_body(row.pk)
    except LogFormatNotSupported:  # one of these must not close the list
        created_at = int(row.created_at.timestamp())
        body = initial_body(
            row.pk, model=row.model, created_at=created_at, status=Status(row.status), echo={}
        )
        return {**body, "output": row.output or []}
