"""What all surfaces share: operations, their errors and their headers."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from responses_app.http.session_key import NO_CONTROLS, SESSION_KEY_HEADER
from responses_app.models import MAX_SESSION_KEY_CHARS
from responses_app.requests.client_options import (
    APPROVAL_HEADER,
    CLIENT_TOOLS_HEADER,
    FORM_HEADER,
    approval_wait,
    client_tools_mode,
    tool_form,
)
from responses_app.requests.clients import REASONING_HEADER, reasoning_form
from responses_app.requests.disconnect import DISCONNECT_HEADER, on_disconnect
from responses_app.requests.headers import (
    ESTIMATED,
    IGNORED_HEADER,
    LAST_EVENT_HEADER,
    MAX_CURSOR_DIGITS,
    SESSION_HEADER,
    TURN_POLICY_HEADER,
    USAGE_HEADER,
    session_id,
    turn_policy,
)
from responses_app.requests.idempotency import KEY_HEADER, REPLAYED_HEADER, idempotency_key
from responses_app.requests.json_schema import (
    STRING,
    Schema,
    const,
    described,
    enum,
    nullable,
    ref,
    shape,
    string,
    whole_number,
)
from responses_app.schema.builders import (
    Operation,
    header,
    with_description_outside,
)

Security = list[dict[str, list[str]]]

NO_KEY: Security = []
REQUEST_ID_HEADER = "x-request-id"
ERROR = shape(
    {
        "error": shape(
            {
                "message": string("What is wrong, and what to do."),
                "type": STRING,
                "param": nullable(string("The field, parameter or header to blame.")),
                "code": nullable(string("What happened, for programs.")),
            }
        )
    }
)


EVENT_PATTERN = f"^[0-9]{{0,{MAX_CURSOR_DIGITS}}}$"
CURSOR = whole_number(0, 10**MAX_CURSOR_DIGITS - 1)

# -- headers ----------------------------------------------------------------------------
REQUEST_HEADERS: dict[str, Schema] = {
    SESSION_HEADER: session_id.described("Continues, or starts, the session of this name.").schema,
    SESSION_KEY_HEADER: string(
        "Your name for the person the session belongs to.",
        pattern=f"^{NO_CONTROLS}$",
        minLength=1,
        maxLength=MAX_SESSION_KEY_CHARS,
    ),
    TURN_POLICY_HEADER: turn_policy.described(
        "What happens if another turn of the session runs."
    ).schema,
    FORM_HEADER: tool_form.schema,
    CLIENT_TOOLS_HEADER: client_tools_mode.schema,
    APPROVAL_HEADER: approval_wait.schema,
    DISCONNECT_HEADER: on_disconnect.schema,
    REASONING_HEADER: reasoning_form.schema,
    KEY_HEADER: idempotency_key.schema,
    LAST_EVENT_HEADER: string("Continue after this event.", pattern=EVENT_PATTERN),
}
GENERATING = (
    TURN_POLICY_HEADER,
    KEY_HEADER,
    FORM_HEADER,
    CLIENT_TOOLS_HEADER,
    APPROVAL_HEADER,
    REASONING_HEADER,
)
RESPONSE_HEADERS: dict[str, Schema] = {
    REQUEST_ID_HEADER: string("Names this request in the server's log."),
    SESSION_HEADER: string("The session it belongs to."),
    SESSION_KEY_HEADER: string("As it was sent."),
    IGNORED_HEADER: string("The names of fields that nothing acts on."),
    USAGE_HEADER: described(
        const(ESTIMATED), "The model's server did not count all tokens of the usage."
    ),
    REPLAYED_HEADER: described(
        const("true"), "The request had been made before; this is its response."
    ),
    "Retry-After": string("Seconds."),
    "x-should-retry": described(const("false"), "Sending it again would not help."),
    "WWW-Authenticate": described(const("Bearer"), "How to send the key."),
    "X-Hermes-Completed": described(const("false"), "The answer is incomplete."),
    "X-Hermes-Partial": described(enum(("true", "false")), "Whether there is a part of it."),
    "X-Hermes-Error": string("Why it is incomplete."),
}
EVERY_RESPONSE = (REQUEST_ID_HEADER, SESSION_KEY_HEADER)

# -- errors -----------------------------------------------------------------------------
# A completion that was admitted and failed has these.
_ADMITTED = (SESSION_HEADER, IGNORED_HEADER, REPLAYED_HEADER, USAGE_HEADER, "x-should-retry")


class Error(NamedTuple):
    name: str
    description: str
    headers: tuple[str, ...] = ()  # those it may have


ERRORS: dict[str, Error] = {
    "400": Error("BadRequest", "A field, parameter, header or the body is not valid.", _ADMITTED),
    "401": Error(
        "Unauthenticated", "No key, a wrong one, or a revoked one.", ("WWW-Authenticate",)
    ),
    "403": Error("OriginNotAllowed", "A web page that may not use this server."),
    "404": Error("NotFound", "Unknown, deleted, or of another owner."),
    "409": Error("Conflict", "Not possible in the present state.", ("x-should-retry",)),
    "413": Error("BodyTooLarge", "The body has too many bytes."),
    "415": Error("UnsupportedEncoding", "The body is compressed."),
    "422": Error("KeyReused", "The Idempotency-Key belongs to another request."),
    "429": Error("RateLimited", "The model's server limits the rate of requests.", _ADMITTED),
    "500": Error("InternalError", "The server, or the model's, failed.", _ADMITTED),
    "502": Error("UpstreamFailed", "The model gave no answer.", _ADMITTED),
    "503": Error("StorageUnavailable", "Nothing was stored; send it again.", ("Retry-After",)),
    "default": Error("Error", "Any other error, such as a method or a length that is not allowed."),
}
EVERYWHERE = ("400", "403", "415", "500", "default")
OF_GENERATING = ("404", "409", "422", "503")


def components() -> dict[str, Any]:
    """The parts of the document that operations refer to by name."""
    responses: dict[str, Any] = {}
    for error in ERRORS.values():
        responses[error.name] = response(json(ref("Error")), error.description, error.headers)
    parameters: dict[str, Any] = {}
    for name, schema in REQUEST_HEADERS.items():
        parameters[name] = {"name": name, "in": "header"} | with_description_outside(schema)
    headers = {name: with_description_outside(schema) for name, schema in RESPONSE_HEADERS.items()}
    return {
        "schemas": {"Error": ERROR},
        "responses": responses,
        "headers": headers,
        "parameters": parameters,
    }


# -- operations -------------------------------------------------------------------------
def json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def response(
    content: dict[str, Any], description: str = "Done.", headers: Iterable[str] = ()
) -> dict[str, Any]:
    listed: dict[str, Schema] = {}
    for name in chain(EVERY_RESPONSE, headers):
        listed[name] = {"$ref": f"#/components/headers/{name}"}
    return {"description": description, "headers": listed, "content": content}


def request_body(schema: Schema, *, is_required: bool = True) -> dict[str, Any]:
    return {"required": is_required, "content": json(schema)}


def operation(
    name: str,
    summary: str,
    success: tuple[int, dict[str, Any]],
    *,
    body: Schema | None = None,
    parameters: Iterable[Schema] = (),
    errors: Iterable[str] = (),
    description: str = "",
    security: Security | None = None,
) -> Operation:
    """One method of one path; without ``security`` it needs a key if the server asks for keys."""
    made: Operation = {"operationId": name, "summary": summary}
    if description:
        made["description"] = description
    made["parameters"] = [header(SESSION_KEY_HEADER), *parameters]
    statuses = set(chain(EVERYWHERE, errors))
    if body is not None:
        made["requestBody"] = body
        statuses.add("413")
    if security is not None:
        made["security"] = security
    if security != NO_KEY:
        statuses.add("401")
    status, succeeded = success
    made["responses"] = {str(status): succeeded}
    for status_name in sorted(statuses):
        error = ERRORS[status_name]
        made["responses"][status_name] = {"$ref": f"#/components/responses/{error.name}"}
    return made


def generating(
    name: str,
    summary: str,
    success: tuple[int, dict[str, Any]],
    *,
    body: str,
    headers: Iterable[str] = (),
    parameters: Iterable[Schema] = (),
    errors: Iterable[str] = (),
    description: str = "",
) -> Operation:
    """An operation that starts a turn; ``headers`` are those it reads besides the common ones."""
    read_headers = [header(read) for read in chain(headers, GENERATING)]
    return operation(
        name,
        summary,
        success,
        body=request_body(ref(body)),
        parameters=chain(read_headers, parameters),
        errors=chain(OF_GENERATING, errors),
        description=description,
    )
