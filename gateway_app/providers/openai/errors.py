"""What an upstream's error means: the message for the client, and whether a retry may help."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import openai

from gateway_app.agent.events import ModelFailed
from gateway_app.agent.model_faults import ContextOverflow, ModelFault
from gateway_app.providers.openai.overflow import find_overflow
from responses_app.protocol.failures import ERROR_CODES, TOO_LONG

MAX_MESSAGE_CHARS = 1000
# Of each end of a message: some upstreams repeat the whole prompt between the two.
JUDGED_CHARS = 2000
MAX_DETAILS = 5  # of a validation error that lists them
_STATUS_CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
_MESSAGE_FIELDS = ("message", "detail", "error")


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


_QUOTA = _any_of(
    r"insufficient_quota|exceeded your current quota|insufficient (?:balance|credit|funds)",
    r"credit balance is too low|payment required|billing.{1,20}limit",
)
_UNKNOWN_MODEL = _any_of(
    r"model_not_found|model_not_exist|unknown_model|invalid_model|model_decommissioned",
    r"\bmodel\b.{0,80}\b(?:not found|does not exist|doesn't exist|not exist|is not available)",
    r"(?:no such|unknown|invalid|could ?n.t find(?: the)?) model\b",
    r"not a valid model|no models? (?:loaded|available)|deployment.{0,40}does not exist",
)
_LOADING = _any_of(
    r"(?:model|server) (?:\S{1,80} )?(?:is )?(?:currently |still )?(?:loading|starting|warming)",
    r"loading (?:the )?model|initiali[sz]ing",
)
_PASSING = _any_of(
    r"overload|server_error|internal (?:server )?error|unavailable|bad gateway",
    r"rate_limit|too many requests|time(?:d )?.?out",
    r"(?:connection|stream|network)\b.{0,40}\b(?:lost|reset|closed|broken|abort|interrupt|error|drop|disconnect)",
    r"(?:lost|broken|reset) (?:the )?connection|broken pipe|disconnected",
    r"crashed|process (?:has |is )?(?:died|exited|terminated|no longer running)",
)
_CANNOT = _any_of(
    r"unsupported|disabled|cannot|can't|n't support|verified to",
    r"not (?:\w{1,20} ){0,2}(?:support|allow|available|implement|enabled|possible)",
)
_STREAM = _any_of(r"\bstream(?:ing|ed)?\b")


class Refused(ModelFailed):
    """An HTTP error in the place of an answer."""

    status = 0
    is_loading = False  # the error states that the model is not ready yet
    judged = ""  # the fields that identify the error, and both ends of its message
    refused_text = ""  # the same, where the upstream refuses this very request
    param = ""  # the field that the upstream names as the cause
    is_about_streaming = False


@dataclass(frozen=True)
class _Judgement:
    is_transient: bool = False
    code: str | None = None  # where it fits better than the usual one of the status
    model_fault: ModelFault | None = None
    overflow: ContextOverflow | None = None


@dataclass(frozen=True)
class _ErrorBody:
    """An error in one shape, whatever the shape in which it came."""

    message: str
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def param(self) -> str:
        """The field of the request that the error names."""
        given = self.fields.get("param")
        return given if isinstance(given, str) else ""

    def judged_text(self) -> str:
        """The fields that identify the error, and both ends of the message."""
        parts = []
        for name in ("code", "type", "status", "param"):
            parts.append(str(self.fields.get(name) or ""))
        parts.append(_both_ends(self.message))
        return " ".join(parts)


def refusal(error: openai.APIStatusError) -> Refused:
    status = error.status_code
    body = _read_error(error.body)
    message = body.message or error.response.reason_phrase
    judged = body.judged_text()
    judgement = _judge(status, body, judged)
    prefix = "The"
    if status in (401, 403):
        prefix = "upstream_auth_failed: the"
    refused = Refused(
        f"{prefix} model's server answered {status}: {message}",
        judgement.code or _STATUS_CODES.get(status, "server_error"),
        is_transient=judgement.is_transient,
        retry_after=retry_after_secs(error.response.headers),
        model_fault=judgement.model_fault,
        overflow=judgement.overflow,
    )
    refused.status = status
    refused.is_loading = status == 503 and bool(_LOADING.search(judged))
    refused.judged = judged
    if status in (400, 422):
        refused.refused_text = judged
        refused.param = body.param
    is_refusal = status == 501 or (400 <= status < 500 and status not in (401, 408, 409, 429))
    refused.is_about_streaming = is_refusal and _is_about_streaming(body)
    return refused


def failure_in(error: Any) -> ModelFailed:
    """The failure that an error inside a stream or a failed response stands for."""
    body = _read_error(error)
    status = _status_in(body.fields)
    judgement = _judge(status, body, body.judged_text())
    code = judgement.code
    given_code = body.fields.get("code")
    if code is None and isinstance(given_code, str) and given_code in ERROR_CODES:
        code = given_code
    return ModelFailed(
        f"The model failed: {body.message or 'its server gives no reason.'}",
        code or _STATUS_CODES.get(status or 0, "server_error"),
        is_transient=judgement.is_transient,
        model_fault=judgement.model_fault,
        overflow=judgement.overflow,
    )


def error_in(event: Any) -> Any:
    """The error that an event or a whole body stands for; None where it is none."""
    if isinstance(event, list) and event:  # Gemini
        return error_in(event[0])
    if not isinstance(event, dict):
        return None
    if isinstance(event.get("error"), str) and event["error"]:  # xAI has a code beside it
        return event
    if event.get("error"):
        return event["error"]
    if event.get("type") == "error" or event.get("object") == "error":  # SGLang, Mistral
        return event
    return None


def _status_in(error: dict[str, Any]) -> int | None:
    for name in ("status", "status_code", "code"):
        text = str(error.get(name))
        if re.fullmatch(r"[1-5]\d\d", text):
            return int(text)
    return None


def _judge(status: int | None, body: _ErrorBody, text: str) -> _Judgement:
    overflow = find_overflow(body.fields, _both_ends(body.message), status)
    if overflow is not None:
        return _Judgement(code=TOO_LONG, model_fault=ModelFault.CONTEXT_OVERFLOW, overflow=overflow)
    if status == 402 or _QUOTA.search(text):
        return _Judgement(model_fault=ModelFault.QUOTA)
    if status in (401, 403):
        return _Judgement(model_fault=ModelFault.AUTHENTICATION)
    if status == 404 or (status in (None, 400, 422) and _UNKNOWN_MODEL.search(text)):
        return _Judgement(model_fault=ModelFault.UNKNOWN_MODEL)
    if status is None:
        return _Judgement(is_transient=bool(_PASSING.search(text)))
    return _Judgement(is_transient=status in (408, 409, 429) or status >= 500)


def retry_after_secs(headers: Mapping[str, str]) -> float | None:
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time())
    except (KeyError, ValueError):
        return None


def _read_error(given: Any) -> _ErrorBody:
    error = error_in(given) or given
    fields: dict[str, Any] = {}
    if isinstance(error, dict):
        fields = error
    return _ErrorBody(message_of(error), fields)


def message_of(body: Any) -> str:
    """The text of an error: servers put objects and lists where others have the text."""
    if isinstance(body, list):
        messages = [message_of(entry) for entry in body[:MAX_DETAILS]]
        return "; ".join(message for message in messages if message)
    if isinstance(body, dict):
        if isinstance(body.get("msg"), str):
            return _validation_text(body)
        for name in _MESSAGE_FIELDS:
            if body.get(name):
                return message_of(body[name])
    if not isinstance(body, str):
        return ""
    text = body.strip()
    if text.startswith("<"):  # a proxy's page is no message
        return ""
    return text


def _validation_text(entry: dict[str, Any]) -> str:
    """One of the errors that servers built on pydantic answer with."""
    location = ".".join(map(str, entry.get("loc") or ()))
    return f"{location}: {entry['msg']}".removeprefix(": ")


def _is_about_streaming(body: _ErrorBody) -> bool:
    if body.param == "stream":
        return True
    judged = _both_ends(body.message)
    return bool(_STREAM.search(judged) and _CANNOT.search(judged))


def _both_ends(text: str) -> str:
    if len(text) <= 2 * JUDGED_CHARS:
        return text
    return f"{text[:JUDGED_CHARS]}\n{text[-JUDGED_CHARS:]}"
