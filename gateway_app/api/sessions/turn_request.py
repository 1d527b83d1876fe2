"""The body of a turn of a session."""

from dataclasses import replace
from typing import Any

from gateway_app.api.runs import requests as runs
from gateway_app.api.runs.requests import always_stored
from responses_app.http.principals import Principal
from responses_app.models import Kind, Session
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests import create
from responses_app.requests.chat_content import as_content
from responses_app.requests.client_options import PLAIN_OPTIONS, ClientOptions
from responses_app.requests.fields import Field, ignored, read_fields, text, without_nulls
from responses_app.requests.input_items import HISTORY, INPUT_SCHEMA, read_input
from responses_app.requests.json_schema import NULL, any_of, array_of, ref
from responses_app.requests.messages import as_items
from responses_app.services.lifecycle.admission import Admission

_PART_KEYS = ("text", "image_url", "file", "file_data", "file_url")


def _read_turn_input(value: Any, name: str) -> Any:
    """A text, items, or the parts of one message; checked once the owner is known."""
    if isinstance(value, list) and value and all(_is_part(entry) for entry in value):
        return [{"role": "user", "content": as_content(value)}]
    return as_items(value)


def _is_part(entry: Any) -> bool:
    """A message has ``content`` instead of these."""
    return isinstance(entry, dict) and not entry.keys().isdisjoint(_PART_KEYS)


def _read_other_history(value: Any, name: str) -> None:
    raise InvalidRequest(
        f"A session has a history of its own. Leave {name} out, or fork the session.", param=name
    )


_turn_input = Field(_read_turn_input, any_of(INPUT_SCHEMA, array_of(ref("ChatPart"), minItems=1)))
_other_history = Field(_read_other_history, NULL).described("Not supported.")
_TURN_FIELDS: dict[str, Field[Any]] = {
    "conversation": _other_history,
    "previous_response_id": _other_history,
    "message": _turn_input.described("A text, the parts of one message, or items."),
    "input": _turn_input.described("The same as message."),
    "system_message": text.described("Goes with this turn."),
    "instructions": text.described("The same as system_message."),
    "store": always_stored("A session keeps its turns: store can't be false here."),
}
IGNORED_FIELDS = runs.IGNORED_FIELDS | {HISTORY: ignored}
TURN_FIELDS = create.FIELDS | _TURN_FIELDS | IGNORED_FIELDS
# Hermes' name of a field, and that of Responses.
SYNONYMS = {"message": "input", "system_message": "instructions"}


def read_chat(
    body: dict[str, Any],
    principal: Principal,
    session: Session,
    chosen: ClientOptions = PLAIN_OPTIONS,
) -> Admission:
    """A turn of a session: its history is the session's, its new messages are in the body."""
    given = without_nulls(body)
    for name, other in SYNONYMS.items():
        if name in given and other in given:
            raise InvalidRequest(f"{name} and {other} mean the same; send one of them.", param=name)
    own = read_fields(_TURN_FIELDS, given)
    _check_input(own, principal.owner_id)
    fields: dict[str, Any] = {}
    if session.model:
        fields["model"] = session.model
    unused = sorted(given.keys() & IGNORED_FIELDS.keys())
    for name, value in (given | own).items():
        if name not in unused:
            fields[SYNONYMS.get(name, name)] = value
    admission = create.read_create(fields, principal, session.public_id, chosen).admission
    return replace(admission, kind=Kind.SESSION_CHAT, ignored=admission.ignored + tuple(unused))


def _check_input(given: dict[str, Any], owner_id: int) -> None:
    """Errors name the field that the client sent."""
    for name in ("message", "input"):
        if name in given:
            read_input(given[name], owner_id, name)
            return
    raise InvalidRequest("message is required.", param="message", code="missing_required_parameter")
