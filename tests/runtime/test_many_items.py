"""One input may hold thousands of items that name others: they are looked up together."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from responses_app.models import Approver, Response, ToolEvent, ToolStatus
from responses_app.protocol.ids import item_id, new_response_id
from responses_app.protocol.items import Item
from responses_app.services.history.item_references import resolve_references
from responses_app.services.history.server_calls import with_outputs_of_ledger
from responses_app.services.lifecycle.approval_requests import answered_events, asked_events
from tests.support.bulk_rows import make_row

pytestmark = pytest.mark.django_db
MANY = 2000
FEW_QUERIES = 12


@pytest.fixture
def row() -> Response:
    return make_row(id=new_response_id())


def request_id(row: Response) -> str:
    return item_id(row.pk, "mcp_approval_request", 0)


def test_calls_without_outputs() -> None:
    calls: list[Item] = []
    for number in range(MANY):
        calls.append({"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"})
        mcp_id = f"mcp_{number:032x}o0000"
        calls.append({"type": "mcp_call", "id": mcp_id, "server_label": "hermes", "name": "f", "arguments": "{}"})
    with CaptureQueriesContext(connection) as queries:
        assert with_outputs_of_ledger(1, calls) == calls
    assert len(queries) <= FEW_QUERIES


def test_forged_requests_for_approval() -> None:
    forged = [f"mcpr_{number:032x}o0000" for number in range(MANY)]
    with CaptureQueriesContext(connection) as queries:
        assert asked_events(1, forged) == {}
    assert len(queries) <= FEW_QUERIES


def test_one_answer_many_times(row: Response) -> None:
    event = ToolEvent.objects.create(
        response=row,
        call_id=request_id(row),
        name="f",
        arguments="{}",
        attempt=1,
        approver=Approver.CLIENT,
        status=ToolStatus.AWAITING_APPROVAL,
    )
    answer: Item = {"type": "mcp_approval_response", "approval_request_id": request_id(row), "approve": True}
    with CaptureQueriesContext(connection) as queries:
        found = answered_events(row.owner_id, [answer] * MANY, 0, "input[{}]".format)
    assert found == [(event, True)]
    assert len(queries) <= FEW_QUERIES


def test_one_reference_many_times(row: Response) -> None:
    message: Item = {"type": "message", "id": item_id(row.pk, "message", 0), "role": "assistant", "content": []}
    Response.objects.filter(pk=row.pk).update(output=[message])
    reference: Item = {"type": "item_reference", "id": message["id"]}
    with CaptureQueriesContext(connection) as queries:
        resolved = resolve_references(row.owner_id, [reference] * MANY)
    assert [item["role"] for item in resolved] == ["assistant"] * MANY
    assert len(queries) <= FEW_QUERIES
