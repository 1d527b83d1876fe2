"""A turn with ``generate: false``: complete at once, and without output."""

import time
from typing import Any

from responses_app.eventlog import Numbering, Segment
from responses_app.protocol import events
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import Event
from responses_app.protocol.ids import new_response_id
from responses_app.protocol.response_object import ResponseBody, UsageBody, initial_body
from responses_app.protocol.status import Status
from responses_app.requests.fields import boolean
from responses_app.services.lifecycle.admission import Admission

NO_USAGE: UsageBody = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


def is_generating(value: Any) -> bool:
    """The value of ``generate`` in a message; absent means true."""
    return value is None or boolean(value, "generate")


def prepared_turn(admission: Admission) -> tuple[Segment, ResponseBody]:
    """All events of the turn, and its final body."""
    response_id = new_response_id()
    body = initial_body(
        response_id,
        model=admission.model,
        created_at=int(time.time()),
        status=Status.IN_PROGRESS,
        echo=admission.echo,
    )
    opening: list[Event] = [
        {"type": events.CREATED, "response": body},
        {"type": events.IN_PROGRESS, "response": body},
    ]
    builder = OutputBuilder(response_id, opening)
    builder.finish(Status.COMPLETED, usage=NO_USAGE)
    segment = Numbering(response_id, attempt=0).seal(opening + builder.take())
    return segment, builder.snapshot.body()
