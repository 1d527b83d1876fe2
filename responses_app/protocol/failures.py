"""A failed turn as an HTTP error, for the APIs that report it as one."""

import math
import re

from responses_app.protocol.errors import SERVER, ApiError

AUTH_FAILED = "upstream_auth_failed"
RATE_LIMIT = "rate_limit_error"
MAX_SDK_WAIT_SECS = 60  # SDKs ignore a longer Retry-After, and try again at once
_RETRY_AFTER = re.compile(r" Retry after (\d{1,9}) s\.\Z")
_STATUS = {"server_error": 500, "rate_limit_exceeded": 429}  # any other code blames the request


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


def failed_turn(error: dict[str, str], *, has_run_tools: bool = False) -> TurnFailed:
    """From the error of a failed response."""
    code, message = error["code"], error["message"]
    if message.startswith(AUTH_FAILED):
        return TurnFailed(message, AUTH_FAILED, 502, has_run_tools=has_run_tools)
    return TurnFailed(message, code, _STATUS.get(code, 400), has_run_tools=has_run_tools)


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
