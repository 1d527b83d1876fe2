"""The parts of a turn, without a server."""

from responses_app.admin.timeline import Call, _parts
from responses_app.models import ToolEvent
from responses_app.models.tool_events import ToolStatus
from responses_app.protocol.items import Item


class CountedName(str):
    looks = 0

    def endswith(self, *args: object) -> bool:
        CountedName.looks += 1
        return super().endswith(*args)  # type: ignore[arg-type]


def test_many_calls_without_ids_find_their_events_by_their_arguments() -> None:
    numbers = range(300)
    items: list[Item] = []
    for number in numbers:
        arguments = f'{{"n": {number}}}'
        items.append({"type": "mcp_call", "id": f"mcp_{number}", "name": "add", "arguments": arguments})
    events = [
        ToolEvent(call_id=f"call_{number}", name=CountedName("add"), arguments=f'{{"n": {number}}}')
        for number in numbers
    ]
    parts = _parts(items, events)
    found = [part.event for part in parts if isinstance(part, Call)]
    assert found == events
    assert CountedName.looks == len(events)


def test_a_call_without_an_id_has_the_status_of_its_event() -> None:
    item: Item = {"type": "mcp_call", "id": "mcp_1", "name": "add", "arguments": "{}", "status": "in_progress"}
    event = ToolEvent(call_id="call_1", name="add", arguments="{}", status=ToolStatus.AWAITING_APPROVAL)
    [part] = _parts([item], [event])
    assert part.status == "awaiting_approval"
