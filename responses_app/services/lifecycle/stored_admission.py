"""Rebuilds the admission of a stored response from its rows."""

from typing import Any, cast

from responses_app.eventlog import read_segments
from responses_app.models import ApprovalMode, Kind, Response
from responses_app.protocol.items import without_fields
from responses_app.protocol.response_object import ECHO_DEFAULTS
from responses_app.protocol.sse import decode_frame, split_frames
from responses_app.services.history.chain import input_of
from responses_app.services.lifecycle.admission import Admission


def retried_admission(row: Response) -> Admission:
    """The same request once more, behind the same history."""
    opening = read_segments(row.pk, -1, limit=1)[0]
    body = cast(dict[str, Any], decode_frame(split_frames(opening.data)[0])["response"])
    return Admission(
        owner_id=row.owner_id,
        model=row.model,
        items=[without_fields(item, "id") for item in input_of(row.pk)],
        echo={name: body[name] for name in ECHO_DEFAULTS if name in body},
        request=row.request,
        ignored=tuple(row.ignored),
        kind=Kind(row.kind),
        retry_of=row.pk,
        tool_items=row.tool_items,
        client_tools=row.client_tools,
        may_wait_for_approval=row.approvals == ApprovalMode.WAIT,
        reasoning_form=row.reasoning_form,
        is_background=row.is_background,
    )
