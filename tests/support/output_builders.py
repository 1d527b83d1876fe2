"""Events of a response that exists in memory alone."""

from responses_app.protocol.events import CREATED, Event
from responses_app.protocol.response_object import initial_body
from responses_app.protocol.status import Status

RESPONSE_ID = "resp_" + "0" * 32


def created_event() -> Event:
    body = initial_body(RESPONSE_ID, model="m", created_at=1, status=Status.IN_PROGRESS, echo={})
    return {"type": CREATED, "response": body}
