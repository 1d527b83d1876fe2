"""A turn without an answer, for doors that have no other way to say so than an HTTP error."""

from responses_app.protocol.errors import SERVER, ApiError

AUTH_FAILED = "upstream_auth_failed"
RATE_LIMIT = "rate_limit_error"
_STATUS = {"server_error": 500, "rate_limit_exceeded": 429}  # any other code blames the request


class TurnFailed(ApiError):
    """The model gave no answer; ``x-should-retry`` says whether asking again would repeat what tools did."""

    def __init__(
        self, message: str, code: str, status: int, *, has_run_tools: bool = False
    ) -> None:
        super().__init__(message, code=code, status=status)
        self.type = RATE_LIMIT if status == 429 else SERVER if status >= 500 else self.type
        self.headers = {"x-should-retry": "false"} if has_run_tools else {}


def failed_turn(error: dict[str, str], *, has_run_tools: bool = False) -> TurnFailed:
    """From what a failed response says."""
    code, message = error["code"], error["message"]
    if message.startswith(AUTH_FAILED):
        return TurnFailed(message, AUTH_FAILED, 502, has_run_tools=has_run_tools)
    return TurnFailed(message, code, _STATUS.get(code, 400), has_run_tools=has_run_tools)
