"""The body of a decision about a tool call that waits for an approval."""

from dataclasses import dataclass
from typing import Any

from responses_app.models import Decision
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import Field, boolean, read_fields, short_text
from responses_app.requests.json_schema import enum

ALIASES = {"approve": Decision.ONCE, "approved": Decision.ONCE, "allow": Decision.ONCE}
CHOICES = {str(decision): decision for decision in Decision} | ALIASES


@dataclass(frozen=True)
class DecisionRequest:
    decision: Decision
    call_id: str | None
    is_for_all: bool


def _read_choice(value: Any, name: str) -> Decision:
    if not isinstance(value, str) or value not in CHOICES:
        raise InvalidRequest(
            f"{name} must be once, session, always or deny.",
            param=name,
            code="invalid_approval_choice",
        )
    return CHOICES[value]


_choice = Field(_read_choice, enum(CHOICES))
FIELDS: dict[str, Field[Any]] = {
    "choice": _choice,
    "request_id": short_text(200).described("The call_id of one of several calls."),
    "all": boolean.described("Decides about all that wait."),
    "resolve_all": boolean.described("The same."),
}


def read_decision(body: dict[str, Any]) -> DecisionRequest:
    decision = _choice(body.get("choice"), "choice")
    given = read_fields(FIELDS, body)
    return DecisionRequest(
        decision=decision,
        call_id=given.get("request_id"),
        is_for_all=given.get("all", False) or given.get("resolve_all", False),
    )
