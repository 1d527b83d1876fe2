"""Responses and items as JSON bodies show them."""

from typing import cast

from responses_app.eventlog import LogFormatNotSupported, current_body, final_bodies
from responses_app.models import Response
from responses_app.protocol.errors import ResponseNotFound
from responses_app.protocol.ids import location_of_item
from responses_app.protocol.items import ContentPart, Item
from responses_app.protocol.response_object import ResponseBody, initial_body, json_body
from responses_app.protocol.status import Status


def item_payload(item: Item) -> Item:
    """Clients may leave ``annotations`` out of a message; a JSON body has them."""
    location = location_of_item(item["id"])
    if location is not None and not location.is_input:
        return json_body({"output": [item]})["output"][0]
    if item["type"] != "message":
        return item
    content: list[ContentPart] = []
    for part in cast(list[ContentPart], item["content"]):
        if part["type"] == "output_text":
            part = {"annotations": [], **part}
        content.append(part)
    payload = item.copy()
    payload["content"] = content
    return payload


def response_bodies(rows: list[Response]) -> list[ResponseBody]:
    """One query for all that have ended. A response that is deleted meanwhile is left out."""
    ended = [row.pk for row in rows if not row.is_open]
    final = final_bodies(ended)
    bodies = []
    for row in rows:
        body = final.get(row.pk) or _open_body(row)
        if body is not None:
            bodies.append(body)
    return bodies


def response_payload(row: Response) -> ResponseBody:
    body = current_body(row.pk)
    if body is None:  # deleted meanwhile
        raise ResponseNotFound(row.pk)
    return json_body(body)


def response_payloads(rows: list[Response]) -> list[ResponseBody]:
    return [json_body(body) for body in response_bodies(rows)]


def body_without_content(response_id: str) -> ResponseBody:
    """For a response that is not stored: every key, and no content."""
    return _initial_body(Response.objects.get(pk=response_id), {"store": False})


def _open_body(row: Response) -> ResponseBody | None:
    try:
        return current_body(row.pk)
    except LogFormatNotSupported:  # one such log must not make the whole list fail
        body = _initial_body(row, {})
        body["output"] = row.output or []
        return body


def _initial_body(row: Response, echo: dict[str, bool]) -> ResponseBody:
    return initial_body(
        row.pk,
        model=row.model,
        created_at=int(row.created_at.timestamp()),
        status=Status(row.status),
        echo=echo,
    )
