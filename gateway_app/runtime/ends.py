"""How a turn ends: what its terminal event holds."""

from dataclasses import dataclass
from typing import Any

from gateway_app.agent.events import Usage
from responses_app.protocol.status import Status
from responses_app.protocol.text_buffer import clean_text


@dataclass(frozen=True)
class End:
    status: Status
    usage: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    incomplete: dict[str, str] | None = None


def failed(usage: Usage, code: str, message: str) -> End:
    error = {"code": code, "message": clean_text(message)}
    return End(Status.FAILED, usage=usage.as_spent(), error=error)


def incomplete(usage: Usage, reason: str, message: str = "") -> End:
    details = {"reason": str(reason)}
    if message:
        details["message"] = clean_text(message)
    return End(Status.INCOMPLETE, usage=usage.as_spent(), incomplete=details)
