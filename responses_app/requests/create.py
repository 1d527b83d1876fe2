"""``POST /v1/responses``: from a JSON object to an admission."""

from dataclasses import dataclass
from typing import Any

from responses_app.errors import InvalidRequest
from responses_app.principals import Principal
from responses_app.requests.fields import Reader, boolean, choice, integer, metadata, number, short_text, text
from responses_app.requests.items import read_input
from responses_app.requests.models import resolve_model
from responses_app.services.admit import Admission

MAX_ID_CHARS = 256
MAX_TOKENS = 2**31 - 1

# Fields whose value the response object repeats.
ECHOED: dict[str, Reader] = {
    "background": boolean,
    "instructions": text,
    "max_output_tokens": integer(1, MAX_TOKENS),
    "metadata": metadata,
    "previous_response_id": short_text(MAX_ID_CHARS),
    "prompt_cache_key": short_text(MAX_ID_CHARS),
    "safety_identifier": short_text(MAX_ID_CHARS),
    "store": boolean,
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "truncation": choice("auto", "disabled"),
    "user": short_text(MAX_ID_CHARS),
}
OTHERS = {"input", "model", "stream"}


@dataclass(frozen=True)
class CreateRequest:
    admission: Admission
    wants_stream: bool


def read_create(body: dict[str, Any], principal: Principal, session_id: str | None) -> CreateRequest:
    """Check a request before anything is stored; null means the same as absent."""
    given = {name: value for name, value in body.items() if value is not None}
    echo = {name: read(given[name], name) for name, read in ECHOED.items() if name in given}
    wants_stream = boolean(given.get("stream", False), "stream")
    if "input" not in given:
        raise InvalidRequest("input is required.", param="input", code="missing_required_parameter")
    is_stored = echo.get("store", True)
    if echo.get("background") and not is_stored:
        raise InvalidRequest("background needs store: nothing else keeps the result for you.", param="background")
    admission = Admission(
        owner_id=principal.owner_id,
        model=resolve_model(given.get("model"), principal),
        items=read_input(given["input"]),
        echo=echo,
        request={name: value for name, value in body.items() if name != "input"},
        ignored=tuple(sorted(given.keys() - ECHOED.keys() - OTHERS)),
        previous_id=echo.get("previous_response_id"),
        session_id=session_id,
        is_stored=is_stored,
        is_background=echo.get("background", False),
    )
    return CreateRequest(admission, wants_stream)
