"""Items of a conversation that are references to other items."""

import pytest

from tests.support.server import Server

pytestmark = pytest.mark.any_database


def test_a_reference_adds_a_copy_of_its_item(server: Server) -> None:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "referenced"}).json()
        reference = {"type": "item_reference", "id": answer["output"][0]["id"]}
        made = client.post("/v1/conversations", json={"items": [reference]}).json()["id"]
        [copied] = client.get(f"/v1/conversations/{made}/items").json()["data"]
        unknown = client.post("/v1/conversations", json={"items": [{"type": "item_reference", "id": "msg_x"}]})
    assert copied["id"] != reference["id"]
    assert copied["content"][0]["text"] == answer["output"][0]["content"][0]["text"]
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (404, "items[0].id")
