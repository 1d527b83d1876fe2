"""Response rows and segments for tests that drive the event log in this process."""

from typing import Any, cast

from django.contrib.auth import get_user_model

from responses_app.eventlog import Numbering, Segment
from responses_app.models import Response, Session
from responses_app.protocol.events import CREATED, Event
from responses_app.protocol.response_object import ResponseBody, initial_body
from responses_app.protocol.status import OnDisconnect, Status

COMPLETED_BODY: ResponseBody = {
    "status": "completed",
    "output": [],
    "usage": None,
    "error": None,
    "incomplete_details": None,
}


def make_response(session: Session | None = None, **fields: Any) -> Response:
    owner, _ = get_user_model().objects.get_or_create(username="owner")
    session = session or Session.objects.opened(owner.pk, None, "responses")
    return Response.objects.create(
        owner=owner,
        session=session,
        turn=Session.objects.next_turn(session.pk),
        status=Status.IN_PROGRESS,
        model="m",
        on_disconnect=OnDisconnect.CONTINUE,
        **fields,
    )


def opening(row: Response, attempt: int = 0) -> tuple[Numbering, Segment]:
    numbering = Numbering(row.pk, attempt)
    body = initial_body(row.pk, model="m", created_at=1, status=Status.IN_PROGRESS, echo={})
    return numbering, numbering.seal([{"type": CREATED, "response": body}])


def delta(numbering: Numbering, text: str = "x") -> Segment:
    event: Event = {"type": "response.output_text.delta", "output_index": 0, "delta": text}
    return numbering.seal([event])


def progress(numbering: Numbering, text: str = "x") -> Segment:
    event: Event = {"type": "hermes.tool.progress", "call_id": "call_1", "text": text}
    return numbering.seal([event])


def final(numbering: Numbering, **fields: Any) -> Segment:
    body = {"id": numbering.response_id, "status": "completed", "output": [], **fields}
    return numbering.seal([{"type": "response.completed", "response": cast(ResponseBody, body)}])


def unexpected(error: Exception) -> None:
    raise AssertionError(error)
