"""What all doors share: operations, their errors and their headers."""

from collections.abc import Iterable
from typing import Any

from responses_app.agent_profiles import TOOL_ITEM_FORMS
from responses_app.http.session_key import NO_CONTROLS, SESSION_KEY_HEADER
from responses_app.models.idempotency import MAX_KEY_CHARS
from responses_app.models.sessions import MAX_SESSION_KEY_CHARS, TurnPolicy
from responses_app.requests.headers import (
    IGNORED_HEADER,
    LAST_EVENT_HEADER,
    MAX_CURSOR_DIGITS,
    SESSION_HEADER,
    SESSION_ID,
    TURN_POLICY_HEADER,
)
from responses_app.requests.idempotency import KEY_HEADER, REPLAYED_HEADER, VISIBLE
from responses_app.requests.json_schema import (
    STRING,
    Schema,
    const,
    enum,
    nullable,
    ref,
    shape,
    string,
    whole_number,
)
from responses_app.requests.tools import FORM_HEADER
from responses_app.schema.builders import (
    Operation,
    header,
    lifted,
)

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


def session_id(description: str) -> Schema:
    return string(description, pattern=f"^{SESSION_ID}$")


KEY_PATTERN = f"^{VISIBLE}{{1,{MAX_KEY_CHARS}}}$"
EVENT_PATTERN = f"^[0-9]{{0,{MAX_CURSOR_DIGITS}}}$"
CURSOR = whole_number(0, 10**MAX_CURSOR_DIGITS - 1)

# -- headers ----------------------------------------------------------------------------
REQUEST_HEADERS: dict[str, Schema] = {
    SESSION_HEADER: session_id("Continues, or starts, the session of this name."),
    SESSION_KEY_HEADER: string(
        "Your name for whom the session belongs to.",
        pattern=f"^{NO_CONTROLS}$",
        minLength=1,
        maxLength=MAX_SESSION_KEY_CHARS,
    ),
    TURN_POLICY_HEADER: enum(TurnPolicy.values)
    | {"description": "What if another turn of the session runs."},
    FORM_HEADER: enum(TOOL_ITEM_FORMS)
    | {"description": "How calls of the server's own tools are shown."},
    KEY_HEADER: string("Requests with the same key are one.", pattern=KEY_PATTERN),
    LAST_EVENT_HEADER: string("Go on behind this event.", pattern=EVENT_PATTERN),
}
GENERATING = (SESSION_KEY_HEADER, TURN_POLICY_HEADER, KEY_HEADER, FORM_HEADER)
ANSWER_HEADERS: dict[str, Schema] = {
    REQUEST_ID_HEADER: string("Names this request in the server's log."),
    SESSION_HEADER: string("The session it belongs to."),
    SESSION_KEY_HEADER: string("As it was sent."),
    IGNORED_HEADER: string("What of the request nothing acts on."),
    REPLAYED_HEADER: const("true")
    | {"description": "The request had been made before; this is its response."},
    "Retry-After": string("Seconds."),
    "x-should-retry": const("false") | {"description": "Sending it again would not help."},
    "WWW-Authenticate": const("Bearer") | {"description": "How to send the key."},
    "X-Hermes-Completed": const("false") | {"description": "The answer is not whole."},
    "X-Hermes-Partial": enum(("true", "false")) | {"description": "Is there something of it?"},
    "X-Hermes-Error": string("Why it is not."),
}
EVERY_ANSWER = (REQUEST_ID_HEADER, SESSION_KEY_HEADER)

# -- errors -----------------------------------------------------------------------------
# Of a completion that was admitted, and failed.
_ADMITTED = (SESSION_HEADER, IGNORED_HEADER, REPLAYED_HEADER, "x-should-retry")
# status -> its name, when it comes, the headers it may have
ERRORS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "400": ("BadRequest", "A field, parameter, header or the body can't be used.", _ADMITTED),
    "401": ("Unauthenticated", "No key, a wrong one, or a revoked one.", ("WWW-Authenticate",)),
    "403": ("OriginNotAllowed", "A web page that may not use this server.", ()),
    "404": ("NotFound", "Unknown, deleted, or somebody else's.", ()),
    "409": ("Conflict", "It can't be done in the present state.", ("x-should-retry",)),
    "413": ("BodyTooLarge", "The body has too many bytes.", ()),
    "415": ("UnsupportedEncoding", "The body is compressed.", ()),
    "422": ("KeyReused", "The Idempotency-Key belongs to another request.", ()),
    "429": ("RateLimited", "The model's server has had enough.", _ADMITTED),
    "500": ("InternalError", "The server, or the model's, failed.", _ADMITTED),
    "502": ("UpstreamFailed", "The model gave no answer.", _ADMITTED),
    "503": ("StorageUnavailable", "Nothing was stored; send it again.", ("Retry-After",)),
    "default": ("Error", "Any other error, such as a method or a length that is not allowed.", ()),
}
EVERYWHERE = ("400", "403", "415", "500", "default")
OF_GENERATING = ("404", "409", "422")


def components() -> dict[str, Any]:
    return {
        "schemas": {"Error": ERROR},
        "responses": {
            name: {"description": said, "headers": _headers(headers), "content": json(ref("Error"))}
            for name, said, headers in ERRORS.values()
        },
        "headers": {name: lifted(schema) for name, schema in ANSWER_HEADERS.items()},
        "parameters": {
            name: {"name": name, "in": "header", **lifted(schema)}
            for name, schema in REQUEST_HEADERS.items()
        },
    }


# -- operations -------------------------------------------------------------------------
def json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def response(
    content: dict[str, Any], said: str = "Done.", headers: Iterable[str] = ()
) -> dict[str, Any]:
    return {"description": said, "headers": _headers(headers), "content": content}


def request_body(schema: Schema, *, is_required: bool = True) -> dict[str, Any]:
    return {"required": is_required, "content": json(schema)}


def operation(
    name: str,
    summary: str,
    *answers: tuple[int, dict[str, Any]],
    body: Schema | None = None,
    parameters: Iterable[Schema] = (),
    errors: Iterable[str] = (),
    is_open: bool = False,
    **more: Any,
) -> Operation:
    """What somebody can ask; ``is_open`` means without a key."""
    also = (*errors, *(() if is_open else ("401",)), *(() if body is None else ("413",)))
    refused = {status: _refused(status) for status in sorted({*EVERYWHERE, *also})}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [
            header(SESSION_KEY_HEADER),
            *(p for p in parameters if p != header(SESSION_KEY_HEADER)),
        ],
        **({} if body is None else {"requestBody": body}),
        "responses": {**{str(status): said for status, said in answers}, **refused},
        **({"security": []} if is_open else {}),
        **more,
    }


def generating(
    name: str,
    summary: str,
    *answers: tuple[int, dict[str, Any]],
    body: str,
    headers: Iterable[str] = (),
    parameters: Iterable[Schema] = (),
    errors: Iterable[str] = (),
    **more: Any,
) -> Operation:
    """An operation that starts a turn; ``headers`` are those it reads besides the ones that all of them do."""
    return operation(
        name,
        summary,
        *answers,
        body=request_body(ref(body)),
        parameters=[*(header(read) for read in (*headers, *GENERATING)), *parameters],
        errors=(*OF_GENERATING, "503", *errors),
        **more,
    )


def _refused(status: str) -> Schema:
    return {"$ref": f"#/components/responses/{ERRORS[status][0]}"}


def _headers(names: Iterable[str]) -> dict[str, Schema]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in (*EVERY_ANSWER, *names)}
