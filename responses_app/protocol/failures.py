"""A failed turn as an HTTP error, for the APIs that report it as one."""

from responses_app.protocol.errors import SERVER, ApiError

AUTH_FAILED = "upstream_auth_failed"
RATE_LIMIT = "rate_limit_error"
_STATUS = {"server_error": 500, "rate_limit_exceeded": 429}  # any other code blames the request


class TurnFailed(ApiError):
    """``x-should-retry`` is false where a retry would run tools again."""

    def __init__(
        self, message: str, code: str, status: int, *, has_run_tools: bool = False
    ) -> None:
        super().__init__(message, code=code, status=status)
        if status == 429:
            self.type = RATE_LIMIT
        elif status >= 500:
            self.type = SERVER
        if has_run_tools:
            self.headers = {"x-should-retry": "false"}


def failed_turn(error: dict[str, str], *, has_run_tools: bool = False) -> TurnFailed:
    """From the error of a failed response."""
    code, message = error["code"], error["message"]
    if message.startswith(AUTH_FAILED):
        return TurnFailed(message, AUTH_FAILED, 502, has_run_tools=has_run_tools)
    return TurnFailed(message, code, _STATUS.get(code, 400), has_run_tools=has_run_tools)
