"""Responses and items as JSON bodies show them."""

from responses_app.eventlog import current_body, final_bodies
from responses_app.eventlog.formats import LogFormatNotSupported
from responses_app.models import Response
from responses_app.protocol.ids import place_of_item
from responses_app.protocol.response_object import initial_body
from responses_app.protocol.snapshot import Item, ResponseBody, json_body
from responses_app.protocol.status import Status


def shown_item(item: Item) -> Item:
    """An item as JSON bodies show it; what clients left out of a message is filled in."""
    place = place_of_item(item["id"])
    if place is not None and not place.is_input:
        shown: Item = json_body({"output": [item]})["output"][0]
        return shown
    if item["type"] != "message":
        return item
    return {**item, "content": [_shown_part(part) for part in item["content"]]}


def _shown_part(part: Item) -> Item:
    return {"annotations": [], **part} if part["type"] == "output_text" else part


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
