"""Errors as OpenAI's clients read them: a status, and a message with the remedy."""

from typing import Any

INVALID_REQUEST = "invalid_request_error"
NOT_FOUND = "not_found_error"
AUTHENTICATION = "authentication_error"
SERVER = "server_error"
RETRY_AFTER_SECS = 1
RESTART_SECS = 5


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
        error = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": error}


class InvalidRequest(ApiError):
    """A known field with a value that can't be used; ``param`` names it."""


class BodyTooLarge(ApiError):
    status = 413
    code = "body_too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"The request body has more than {limit_bytes} bytes. Send a smaller one.")


class Unauthenticated(ApiError):
    status = 401
    type = AUTHENTICATION
    code = "invalid_api_key"
    headers = {"WWW-Authenticate": "Bearer"}


class OriginNotAllowed(ApiError):
    status = 403
    code = "origin_not_allowed"

    def __init__(self, origin: str) -> None:
        super().__init__(
            f"Web pages of {origin!r} may not use this server. "
            "Its operator can add them to API_SERVER_CORS_ORIGINS.",
            param="Origin",
        )


class MethodNotAllowed(ApiError):
    """RFC 9110 wants the methods that are allowed beside it."""

    status = 405
    code = "method_not_allowed"

    def __init__(self, method: str, allowed: str) -> None:
        super().__init__(f"{method} is not allowed here. These methods are: {allowed}.")
        self.headers = {"Allow": allowed}


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
        super().__init__(
            f"Response {response_id} has been deleted; its content is gone.", param="response_id"
        )


class PreviousResponseNotFound(NotFound):
    code = "previous_response_not_found"

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"Previous response not found: {response_id}", param="previous_response_id"
        )


class ModelNotFound(NotFound):
    code = "model_not_found"

    def __init__(self, model: str) -> None:
        super().__init__(
            f"The model {model!r} does not exist or this key may not use it. "
            "GET /v1/models lists those it may.",
            param="model",
        )


class NoModelAllowed(ApiError):
    status = 403
    code = "no_model_allowed"

    def __init__(self) -> None:
        super().__init__(
            "This key is bound to profiles that do not exist or are disabled. "
            "An operator can bind it to another.",
            param="model",
        )


class CursorAhead(ApiError):
    code = "cursor_ahead_of_log"

    def __init__(self, cursor: int, last: int, param: str = "starting_after") -> None:
        super().__init__(
            f"{param} is {cursor}, but the newest event of this response is {last}. "
            "Resume with the number of the last event you received.",
            param=param,
        )


class IdempotencyKeyReused(ApiError):
    status = 422
    code = "idempotency_key_reused"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"The Idempotency-Key {key!r} was sent with another request in the last 24 hours. "
            "Send a new one.",
            param="Idempotency-Key",
        )


class IdempotentResultNotStored(ApiError):
    status = 409
    code = "idempotent_result_not_stored"
    headers = {"x-should-retry": "false"}

    def __init__(self) -> None:
        super().__init__(
            "The request with this Idempotency-Key was answered, and with store: false nothing of "
            "the answer was kept.",
            param="Idempotency-Key",
        )


class StorageUnavailable(ApiError):
    """Nothing was stored; the same request may simply be sent again."""

    status = 503
    type = SERVER
    code = "storage_unavailable"
    headers = {"Retry-After": str(RETRY_AFTER_SECS)}

    def __init__(self, why: str) -> None:
        super().__init__(
            "The database is not available now, and nothing was stored. "
            "Send the request again in a moment."
        )
        self._why = why

    def __str__(self) -> str:
        """For the log: the database's message names its host and user, which no client may see."""
        return self._why


class ServerShuttingDown(ApiError):
    """Nothing was done; the next start, or another server, answers."""

    status = 503
    type = SERVER
    code = "server_shutting_down"
    headers = {"Retry-After": str(RESTART_SECS), "Connection": "close"}

    def __init__(self) -> None:
        super().__init__("The server is shutting down. Send the request again in a moment.")


class RequestInterrupted(ApiError):
    """The process ended before this request did; whether it was carried out is not known."""

    status = 503
    type = SERVER
    code = "request_interrupted"

    def __init__(self, *, is_repeatable: bool) -> None:
        super().__init__(
            "The server is shutting down and did not finish this request. Whether it was carried "
            "out is not known: check before you send it again. With an Idempotency-Key it can be "
            "sent again in any case."
        )
        self.headers = {"Retry-After": str(RESTART_SECS), "Connection": "close"}
        self.headers["x-should-retry"] = "true" if is_repeatable else "false"


class ResponseInterrupted(ApiError):
    """This process ends before the response does; a retry would make a second response."""

    status = 503
    type = SERVER
    code = "response_interrupted"
    headers = {"Retry-After": str(RESTART_SECS), "x-should-retry": "false"}

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"The server is shutting down. Response {response_id} goes on when it is back: "
            f"GET /v1/responses/{response_id}."
        )


class InternalError(ApiError):
    status = 500
    type = SERVER
    code = "internal_error"

    def __init__(self) -> None:
        super().__init__(
            "The server met an unexpected condition. The request id is in the x-request-id header."
        )


class ConversationNotFound(NotFound):
    code = "conversation_not_found"

    def __init__(self, reference: str, param: str = "conversation") -> None:
        super().__init__(f"Conversation not found: {reference}", param=param)


class NameTaken(InvalidRequest):
    code = "name_taken"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"You have a conversation named {name!r} already; its name can stand for its id.",
            param="name",
        )


class RunNotFound(NotFound):
    code = "run_not_found"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run not found: {run_id}", param="run_id")


class SessionNotFound(NotFound):
    code = "session_not_found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Session not found: {session_id}", param="session_id")


class SessionExists(ApiError):
    status = 409
    code = "session_exists"
    headers = {"x-should-retry": "false"}

    def __init__(self, session_id: str) -> None:
        super().__init__(f"You have a session {session_id!r} already.", param="id")


class SessionBusy(ApiError):
    status = 409
    code = "session_busy"
    headers = {"x-should-retry": "false"}

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"A turn of the session {session_id!r} is running, and its turn policy is to reject "
            "others. "
            "Wait for its end, or send X-Hermes-Turn-Policy: queue or interrupt."
        )
