"""``POST /v1/runs``: from a JSON object to an admission."""

from dataclasses import replace
from typing import Any

from gateway_app.api.content import CHAT_IMAGE, as_content
from responses_app.http.principals import Principal
from responses_app.models import Kind
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests import create
from responses_app.requests.client_options import PLAIN_OPTIONS, ClientOptions
from responses_app.requests.content import content_schema
from responses_app.requests.fields import (
    Field,
    an_object,
    boolean,
    ignored,
    read_fields,
    text,
    without_nulls,
)
from responses_app.requests.headers import session_id
from responses_app.requests.input_items import MAX_ITEMS, check_compactions, input_items
from responses_app.requests.items import OTHER_ROLES, message_schema
from responses_app.requests.json_schema import (
    NULL,
    STRING,
    any_of,
    array_of,
    const,
    ref,
    request_object,
)
from responses_app.requests.structures import read_array
from responses_app.services.lifecycle.admission import Admission

HISTORY = "conversation_history"


# -- messages in the form of Hermes -----------------------------------------------------
def as_items(value: Any) -> Any:
    """Bare strings are messages, and a message without a role is the user's."""
    if not isinstance(value, list):
        return value
    return [_as_item(entry) for entry in value]


def _as_item(entry: Any) -> Any:
    if isinstance(entry, str):
        return {"role": "user", "content": entry}
    if not isinstance(entry, dict):
        return entry
    if entry.get("role") is None and "content" in entry and _is_message(entry):
        return _with_images(entry | {"role": "user"})
    return _with_images(entry)


def _is_message(entry: dict[str, Any]) -> bool:
    return entry.get("type") in (None, "message")


def _with_images(entry: dict[str, Any]) -> dict[str, Any]:
    if not _is_message(entry) or "content" not in entry:
        return entry
    return entry | {"content": as_content(entry["content"])}


_ITEM = any_of(
    ref("InputItem"),
    message_schema("ChatPart", OTHER_ROLES),
    message_schema("OutputPart", ("assistant",), CHAT_IMAGE),
)
_NO_ROLE = request_object(
    {"type": const("message"), "role": NULL, "content": content_schema("ChatPart")}, ("content",)
)
INPUT_SCHEMA = any_of(
    STRING, array_of(any_of(STRING, _ITEM, _NO_ROLE), minItems=1, maxItems=MAX_ITEMS)
)


# -- fields -----------------------------------------------------------------------------
def _read_input(value: Any, name: str) -> Any:
    """Converted here, and checked where a response is created."""
    return as_items(value)


def _read_history(value: Any, name: str) -> list[Item]:
    """As in Hermes, each message is an object with its role; only the input may be bare texts."""
    messages: list[dict[str, Any]] = []
    for index, entry in enumerate(read_array(value, name, "an array of messages")):
        messages.append(_with_images(an_object(entry, f"{name}[{index}]")))
    if not messages:
        return []
    return input_items(messages, name)


def _read_session_id(value: Any, name: str) -> str:
    return session_id(text(value, name), name)


def always_stored(reason: str) -> Field[bool]:
    """``store`` of a surface that stores every turn."""

    def read(value: Any, name: str) -> bool:
        if not boolean(value, name):
            raise InvalidRequest(reason, param=name)
        return True

    return Field(read, const(True)).described("What is made here is always stored.")


IGNORED_FIELDS: dict[str, Field[Any]] = {
    # Hermes clients send these two; the profile decides which model answers.
    "model_options": ignored,
    "provider": ignored,
    # The endpoint decides how the turn is delivered.
    "background": ignored,
    "stream": ignored,
    "stream_options": ignored,
}
OWN_FIELDS: dict[str, Field[Any]] = {
    HISTORY: Field(_read_history, array_of(_ITEM, maxItems=MAX_ITEMS)).described(
        "Messages before the input."
    ),
    "input": Field(_read_input, INPUT_SCHEMA).described(
        "A text, items, or texts and messages without a role."
    ),
    "session_id": Field(_read_session_id, session_id.schema).described(
        "The session that takes the turn."
    ),
    "store": always_stored("A run is always stored: there is no other way to read it."),
}
FIELDS = create.FIELDS | OWN_FIELDS | IGNORED_FIELDS


def read_run(
    body: dict[str, Any],
    principal: Principal,
    session_header: str | None = None,
    client_options: ClientOptions = PLAIN_OPTIONS,
) -> Admission:
    """A response's request in the form of Hermes. The session: body, then chain, then header."""
    given = without_nulls(body)
    if "session_id" in given and "conversation" in given:
        raise InvalidRequest(
            "A conversation has a session of its own; send one of the two.", param="session_id"
        )
    own = read_fields(OWN_FIELDS, given)
    past = own.pop(HISTORY, [])
    check_compactions(past, principal.owner_id, HISTORY)
    chosen = own.pop("session_id", None)
    unused = sorted(given.keys() & IGNORED_FIELDS.keys())
    taken = OWN_FIELDS | IGNORED_FIELDS
    fields = {name: value for name, value in given.items() if name not in taken}
    admission = create.read_create(fields | own, principal, chosen=client_options).admission
    session = chosen
    if chosen is None and admission.previous_id is None and admission.conversation is None:
        session = session_header
    return replace(
        admission,
        kind=Kind.RUNS,
        items=past + admission.items,
        ignored=admission.ignored + tuple(unused),
        session_id=session,
        is_session_chosen=chosen is not None,
        brings_history=bool(past),
    )
