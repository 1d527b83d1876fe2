"""``POST /v1/runs``: from a JSON object to an admission."""

from dataclasses import replace
from typing import Any

from responses_app.http.principals import Principal
from responses_app.models import Kind
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests import create
from responses_app.requests.client_options import PLAIN_OPTIONS, ClientOptions
from responses_app.requests.fields import (
    Field,
    boolean,
    ignored,
    read_fields,
    text,
    without_nulls,
)
from responses_app.requests.headers import session_id
from responses_app.requests.json_schema import const
from responses_app.services.lifecycle.admission import Admission


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
        ignored=admission.ignored + tuple(unused),
        session_id=session,
        is_session_chosen=chosen is not None,
    )
