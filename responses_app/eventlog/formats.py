"""The format of a log, and what is answered about one that this version does not know."""

from responses_app.protocol.errors import SERVER, ApiError


class LogFormatNotSupported(ApiError):
    """A newer version wrote this log, and was then replaced by this one."""

    status = 503
    type = SERVER
    code = "log_format_not_supported"
    headers = {"x-should-retry": "false"}

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"The events of {response_id} are in the format of a newer version of this server. "
            "It is kept as it is; that version can read it and go on with it."
        )
