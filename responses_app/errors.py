"""Errors as OpenAI's clients read them: a status, and a body that says what to do."""

from typing import Any

INVALID_REQUEST = "invalid_request_error"
NOT_FOUND = "not_found_error"
AUTHENTICATION = "authentication_error"
SERVER = "server_error"
RETRY_AFTER_SECS = 1


class ApiError(Exception):
    status = 400
    type = INVALID_REQUEST
    code: str | None = None
    headers: dict[str, str] = {}

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        if code is not None:
            self.code = code
        if status is not None:
            self.status = status

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class InvalidRequest(ApiError):
    """A known field with a value that can't be used; ``param`` names it."""


class BodyTooLarge(ApiError):
    status = 413
    code = "body_too_large"


class Unauthenticated(ApiError):
    status = 401
    type = AUTHENTICATION
    code = "invalid_api_key"
    headers = {"WWW-Authenticate": "Bearer"}


class NotFound(ApiError):
    status = 404
    type = NOT_FOUND
    code = "not_found"


class ResponseNotFound(NotFound):
    code = "response_not_found"

    def __init__(self, response_id: str) -> None:
        super().__init__(f"Response not found: {response_id}", param="response_id")


class ResponseDeleted(NotFound):
    code = "response_deleted"

    def __init__(self, response_id: str) -> None:
        super().__init__(f"Response {response_id} has been deleted; its content is gone.", param="response_id")


class PreviousResponseNotFound(NotFound):
    code = "previous_response_not_found"

    def __init__(self, response_id: str) -> None:
        super().__init__(f"Previous response not found: {response_id}", param="previous_response_id")


class ModelNotFound(NotFound):
    code = "model_not_found"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The model {model!r} does not exist or this key may not use it. GET /v1/models lists those it may.",
            param="model",
        )


class CursorAhead(ApiError):
    code = "cursor_ahead_of_log"

    def __init__(self, cursor: int, last: int) -> None:
        super().__init__(
            f"starting_after is {cursor}, but the newest event of this response is {last}. "
            "Resume with the sequence_number of the last event you received.",
            param="starting_after",
        )


class StorageUnavailable(ApiError):
    """Nothing was stored; the same request may simply be sent again."""

    status = 503
    type = SERVER
    code = "storage_unavailable"
    headers = {"Retry-After": str(RETRY_AFTER_SECS)}


class InternalError(ApiError):
    status = 500
    type = SERVER
    code = "internal_error"

    def __init__(self) -> None:
        super().__init__("The server met an unexpected condition. The request id is in the x-request-id header.")


class ConversationNotFound(NotFound):
    code = "conversation_not_found"

    def __init__(self, reference: str, param: str = "conversation") -> None:
        super().__init__(f"Conversation not found: {reference}", param=param)


class NameTaken(InvalidRequest):
    code = "name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"You have a conversation named {name!r} already; its name can stand for its id.", param="name"
        )
