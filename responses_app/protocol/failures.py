"""The error of a failed turn: in its response, and as an HTTP error."""

import math
import re

from responses_app.protocol.errors import SERVER, ApiError

AUTH_FAILED = "upstream_auth_failed"
TOO_LONG = "context_length_exceeded"
RATE_LIMIT = "rate_limit_error"
# The codes that SDKs have for the error of a response; strict clients accept no other.
ERROR_CODES = frozenset(
    {
        "bio_policy",
        "data_residency_mismatch",
        "empty_image_file",
        "failed_to_download_image",
        "image_content_policy_violation",
        "image_file_not_found",
        "image_file_too_large",
        "image_parse_error",
        "image_too_large",
        "image_too_small",
        "invalid_base64_image",
        "invalid_image",
        "invalid_image_format",
        "invalid_image_mode",
        "invalid_image_url",
        "invalid_prompt",
        "misalignment_policy_violation",
        "rate_limit_exceeded",
        "server_error",
        "unsupported_image_media_type",
        "vector_store_timeout",
    }
)
_NEAREST = {TOO_LONG: "invalid_prompt"}  # of other codes, server_error
MAX_SDK_WAIT_SECS = 60  # SDKs ignore a longer Retry-After, and try again at once
_RETRY_AFTER = re.compile(r" Retry after (\d{1,9}) s\.\Z")
_STATUS = {"server_error": 500, "rate_limit_exceeded": 429}  # any other code blames the request
# Codes that only the message of a response's error has; HTTP errors may have any code.
_STATUS_OF_PREFIX = {AUTH_FAILED: 502, TOO_LONG: 400}


class TurnFailed(ApiError):
    """``x-should-retry`` is false where a retry would run tools again, or come much too early."""

    def __init__(
        self, message: str, code: str, status: int, *, has_run_tools: bool = False
    ) -> None:
        super().__init__(message, code=code, status=status)
        if status == 429:
            self.type = RATE_LIMIT
        elif status >= 500:
            self.type = SERVER
        self.headers = retry_headers(message)
        if has_run_tools:
            self.headers["x-should-retry"] = "false"


def response_error(code: str, message: str) -> dict[str, str]:
    """The error of a response; a code that SDKs do not have there begins the message."""
    if code in ERROR_CODES:
        return {"code": code, "message": message}
    return {"code": _NEAREST.get(code, "server_error"), "message": f"{code}: {message}"}


def failed_turn(error: dict[str, str], *, has_run_tools: bool = False) -> TurnFailed:
    """From the error of a failed response."""
    code, message = error["code"], error["message"]
    status = _STATUS.get(code, 400)
    prefix = message.partition(":")[0]
    if prefix in _STATUS_OF_PREFIX:
        code = prefix
        status = _STATUS_OF_PREFIX[prefix]
    return TurnFailed(message, code, status, has_run_tools=has_run_tools)


def with_retry_after(message: str, secs: float | None) -> str:
    """The message of an error, which is also where its HTTP form finds the time to wait."""
    if secs is None or secs <= 0:
        return message
    return f"{message} Retry after {math.ceil(min(secs, 10**9 - 1))} s."


def retry_headers(message: str) -> dict[str, str]:
    found = _RETRY_AFTER.search(message)
    if found is None:
        return {}
    headers = {"Retry-After": found[1]}
    if int(found[1]) > MAX_SDK_WAIT_SECS:
        headers["x-should-retry"] = "false"
    return headers
