"""``POST /v1/runs``: from a JSON object to an admission."""

from dataclasses import replace
from typing import Any

from responses_app.http.principals import Principal
from responses_app.models.responses import Kind
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests.create import read_create
from responses_app.requests.fields import an_object, array, text
from responses_app.requests.headers import read_session_id
from responses_app.requests.items import read_input
from responses_app.services.lifecycle.admission import Admission

HISTORY = "conversation_history"
# Hermes clients send these; which model answers is the profile's business here.
UNUSED = ("model_options", "provider")
# Of a response's fields, those that say how it is delivered.
DELIVERY = ("background", "stream", "stream_options")


def read_run(
    body: dict[str, Any],
    principal: Principal,
    session_header: str | None = None,
    tool_form: str | None = None,
) -> Admission:
    """A response's request in Hermes' words. The session: body, then chain, then header."""
    given = {name: value for name, value in body.items() if value is not None}
    unused = sorted(given.keys() & {*UNUSED, *DELIVERY})
    chosen = _read_session(given)
    past = read_history(given.get(HISTORY, []), principal.owner_id)
    asked = {
        name: value for name, value in given.items() if name not in ("session_id", HISTORY, *unused)
    }
    if "input" in asked:
        asked["input"] = as_items(asked["input"])
    admission = read_create(asked, principal, tool_form=tool_form).admission
    if not admission.is_stored:
        raise InvalidRequest(
            "A run is always stored: there is no other way to read it.", param="store"
        )
    names_history = admission.previous_id is not None or admission.conversation is not None
    return replace(
        admission,
        kind=Kind.RUNS,
        items=[*past, *admission.items],
        ignored=(*admission.ignored, *unused),
        session_id=chosen or (None if names_history else session_header),
        is_session_chosen=chosen is not None,
        brings_history=bool(past),
    )


def read_history(value: Any, owner_id: int, name: str = HISTORY) -> list[Item]:
    """As in Hermes, each message is an object with its role; only the input may be bare texts."""
    entries = array(value, name, "an array of messages")
    for index, entry in enumerate(entries):
        an_object(entry, f"{name}[{index}]")
    return read_input([with_images(entry) for entry in entries], owner_id, name) if entries else []


def as_items(value: Any) -> Any:
    """Hermes takes bare strings for messages, and a message without a role for the user's."""
    return [_as_item(entry) for entry in value] if isinstance(value, list) else value


def _as_item(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"role": "user", "content": entry}
    if not isinstance(entry, dict):
        return entry
    if entry.get("role") is None and "content" in entry and _is_message(entry):
        return with_images({**entry, "role": "user"})
    return with_images(entry)


def _is_message(entry: dict[str, Any]) -> bool:
    return entry.get("type") in (None, "message")


def with_images(entry: dict[str, Any]) -> dict[str, Any]:
    if not _is_message(entry) or "content" not in entry:
        return entry
    return {**entry, "content": as_content(entry["content"])}


def as_content(content: Any) -> Any:
    """Images in the words of chat completions, too."""
    return [_as_part(part) for part in content] if isinstance(content, list) else content


def _as_part(part: Any) -> Any:
    if not isinstance(part, dict) or part.get("type") != "image_url":
        return part
    image = part.get("image_url")
    named = (
        {"image_url": image.get("url"), "detail": image.get("detail")}
        if isinstance(image, dict)
        else part
    )
    return {**named, "type": "input_image"}


def _read_session(given: dict[str, Any]) -> str | None:
    if "session_id" not in given:
        return None
    if "conversation" in given:
        raise InvalidRequest(
            "A conversation has a session of its own; send one of the two.", param="session_id"
        )
    return read_session_id(text(given["session_id"], "session_id"), "session_id")
