"""What an upstream's error means: the message for the client, and whether a retry may help."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import openai

from gateway_app.agent.events import ModelFailed
from responses_app.protocol.failures import ERROR_CODES, TOO_LONG

MAX_MESSAGE_CHARS = 1000
# Of each end of a message: some upstreams repeat the whole prompt between the two.
JUDGED_CHARS = 2000
_STATUS_CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded"}


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)


_QUOTA = _any_of("insufficient_quota", "exceeded your current quota")
_TOO_LONG = _any_of(
    TOO_LONG,
    r"(?:maximum|available) context",
    r"context (?:length|window|size)\W{1,5}(?:\w{1,20}\W{1,5}){0,3}exceed",
    r"exceed\w{0,8} (?:\S{1,40} ){0,5}context",
    r"exceeds the maximum number of tokens",
    r"(?:prompt|input|conversation) (?:is|was) too long",
    r"reduce the length of the (?:messages|prompt|input)",
)
_PASSING = _any_of(
    r"overload|server_error|internal (?:server )?error|unavailable|bad gateway",
    r"rate_limit|too many requests|time(?:d )?.?out",
    r"(?:connection|stream|network)\b.{0,40}\b(?:lost|reset|closed|broken|abort|interrupt|error|drop|disconnect)",
    r"(?:lost|broken|reset) (?:the )?connection|broken pipe|disconnected",
)
_CANNOT = _any_of(
    r"unsupported|disabled|cannot|can't|n't support|verified to",
    r"not (?:\w{1,20} ){0,2}(?:support|allow|available|implement|enabled|possible)",
)
_STREAM = _any_of(r"\bstream(?:ing|ed)?\b")


class Refused(ModelFailed):
    """An HTTP error in the place of an answer."""

    names_stream_options = False
    is_about_streaming = False


def refusal(error: openai.APIStatusError) -> Refused:
    status = error.status_code
    body = error.body
    message = message_of(body) or error.response.reason_phrase
    judged = _judged_text(body, message)
    is_transient, code = _judge(status, judged)
    prefix = "The"
    if status in (401, 403):
        prefix = "upstream_auth_failed: the"
    refused = Refused(
        f"{prefix} model's server answered {status}: {message}",
        code or _STATUS_CODES.get(status, "server_error"),
        is_transient=is_transient,
        retry_after=retry_after_secs(error.response.headers),
    )
    refused.names_stream_options = status in (400, 422) and "stream_options" in judged
    is_refusal = status == 501 or (400 <= status < 500 and status not in (401, 408, 409, 429))
    refused.is_about_streaming = is_refusal and _is_about_streaming(body, message)
    return refused


def failure_in(error: Any) -> ModelFailed:
    """The failure that an error inside a stream or a failed response stands for."""
    given: dict[str, Any] = {}
    if isinstance(error, dict):
        given = error
    status = _status_in(given)
    message = message_of(error)
    is_transient, code = _judge(status, _judged_text(error, message))
    given_code = given.get("code")
    if code is None and isinstance(given_code, str) and given_code in ERROR_CODES:
        code = given_code
    return ModelFailed(
        f"The model failed: {message or 'its server does not say why.'}",
        code or _STATUS_CODES.get(status or 0, "server_error"),
        is_transient=is_transient,
    )


def _status_in(error: dict[str, Any]) -> int | None:
    for name in ("status", "status_code", "code"):
        text = str(error.get(name))
        if re.fullmatch(r"[1-5]\d\d", text):
            return int(text)
    return None


def _judge(status: int | None, text: str) -> tuple[bool, str | None]:
    """May a retry help, and is there a code that fits better than the usual one?"""
    if status not in (401, 403, 429) and _TOO_LONG.search(text):
        return False, TOO_LONG
    if _QUOTA.search(text):
        return False, None
    if status is None:
        return bool(_PASSING.search(text)), None
    return status in (408, 409, 429) or status >= 500, None


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


def message_of(body: Any) -> str:
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body.get("error")
    if isinstance(body, dict):
        body = body.get("message")
    if not isinstance(body, str):
        return ""
    text = body.strip()
    if text.startswith("<"):  # a proxy's page is no message
        return ""
    return text


def _judged_text(body: Any, message: str) -> str:
    """The fields that identify the error, and both ends of the message."""
    parts = []
    if isinstance(body, dict):
        for name in ("code", "type", "status", "param"):
            parts.append(str(body.get(name) or ""))
    parts.append(_both_ends(message))
    return " ".join(parts)


def _is_about_streaming(body: Any, message: str) -> bool:
    if isinstance(body, dict) and body.get("param") == "stream":
        return True
    judged = _both_ends(message)
    return bool(_STREAM.search(judged) and _CANNOT.search(judged))


def _both_ends(text: str) -> str:
    if len(text) <= 2 * JUDGED_CHARS:
        return text
    return f"{text[:JUDGED_CHARS]}\n{text[-JUDGED_CHARS:]}"
