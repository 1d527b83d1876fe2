"""``X-Hermes-On-Disconnect``: a client whose closed connection is its stop button.

Chat Completions have ``store`` for it, and a run is not bound to the connection that starts it.
"""

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.status import OnDisconnect
from responses_app.requests.fields import choice

DISCONNECT_HEADER = "X-Hermes-On-Disconnect"
on_disconnect = choice(*OnDisconnect).described("What happens if you close the connection.")


def stops_with_client(chosen: str, *, is_stored: bool, is_background: bool) -> bool:
    """Whether also a stored response is cancelled when its client is gone."""
    on_disconnect(chosen, DISCONNECT_HEADER)
    stops = chosen == OnDisconnect.CANCEL
    if stops and is_background:
        raise InvalidRequest(
            "A background response does not end with its connection. Cancel it by its id.",
            param=DISCONNECT_HEADER,
        )
    if not stops and not is_stored:
        raise InvalidRequest(
            "A response with store: false can't continue without its client.",
            param=DISCONNECT_HEADER,
        )
    return stops
