"""What an upstream's error means: what the client is told, and whether asking again may help."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

import openai

from gateway_app.agent.events import ModelFailed

MAX_MESSAGE_CHARS = 1000
JUDGED_CHARS = (
    2000  # of each end of a message: some upstreams repeat the whole prompt between the two
)
# What the status of a failed response may be called; an upstream's own code is never shown as one of ours.
CODES = frozenset(
    ("rate_limit_exceeded", "invalid_prompt", "invalid_image", "invalid_image_url", "bio_policy")
)
TOO_LONG = "context_length_exceeded"
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
    status, body = error.status_code, error.body
    said = message_of(body) or error.response.reason_phrase
    where = "upstream_auth_failed: the" if status in (401, 403) else "The"
    is_transient, code = _judge(status, _words(body, said))
    refused = Refused(
        f"{where} model's server answered {status}: {said}",
        code or _STATUS_CODES.get(status, "server_error"),
        is_transient=is_transient,
        retry_after=retry_after_secs(error.response.headers),
    )
    refused.names_stream_options = status in (400, 422) and "stream_options" in _words(body, said)
    is_refusal = status == 501 or (400 <= status < 500 and status not in (401, 408, 409, 429))
    refused.is_about_streaming = is_refusal and (_param(body) == "stream" or _cannot_stream(said))
    return refused


def failure_in(error: Any) -> ModelFailed:
    """What an error inside a stream or a failed response says."""
    given = error if isinstance(error, dict) else {}
    status = next(
        (
            found
            for name in ("status", "status_code", "code")
            if (found := _number(given.get(name)))
        ),
        None,
    )
    said, code = message_of(error), given.get("code")
    is_transient, judged = _judge(status, _words(error, said))
    known = (
        code
        if isinstance(code, str) and code in CODES
        else _STATUS_CODES.get(status or 0, "server_error")
    )
    return ModelFailed(
        f"The model failed: {said or 'its server does not say why.'}",
        judged or known,
        is_transient=is_transient,
    )


def _judge(status: int | None, words: str) -> tuple[bool, str | None]:
    """May asking again help, and is there a code that fits better than the usual one?"""
    if status not in (401, 403, 429) and _TOO_LONG.search(words):
        return False, TOO_LONG
    if _QUOTA.search(words):
        return False, None
    if status is None:
        return bool(_PASSING.search(words)), None
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
    text = body.strip() if isinstance(body, str) else ""
    return "" if text.startswith("<") else text  # a proxy's page is no message


def _words(body: Any, said: str) -> str:
    given = body if isinstance(body, dict) else {}
    named = [str(given.get(name) or "") for name in ("code", "type", "status", "param")]
    return " ".join([*named, _both_ends(said)])


def _cannot_stream(said: str) -> bool:
    judged = _both_ends(said)
    return bool(_STREAM.search(judged) and _CANNOT.search(judged))


def _both_ends(text: str) -> str:
    return (
        text if len(text) <= 2 * JUDGED_CHARS else f"{text[:JUDGED_CHARS]}\n{text[-JUDGED_CHARS:]}"
    )


def _param(body: Any) -> Any:
    return body.get("param") if isinstance(body, dict) else None


def _number(value: Any) -> int | None:
    text = str(value)
    return int(text) if re.fullmatch(r"[1-5]\d\d", text) else None
