"""Files in messages: stored with them, sent to models, erased with them, and never fetched."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.model_stub import ModelStub
from tests.support.pdf_files import as_data_url, pdf, slow_pdf
from tests.support.people import create_key
from tests.support.server import Server
from tests.support.stored_rows import input_items

pytestmark = pytest.mark.any_database
PDF = as_data_url(pdf("the answer is 42"))


@pytest.fixture
def asking(make_server: Callable[..., Server], stub: ModelStub) -> Server:
    return make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")


def message(*parts: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": list(parts)}]


def test_a_file_is_stored_and_sent_and_erased(asking: Server, stub: ModelStub) -> None:
    part = {"type": "input_file", "filename": "a.pdf", "file_data": PDF}
    with asking.http() as client:
        made = client.post("/v1/responses", json={"input": message(part)})
        assert made.status_code == 200, made.text
        response_id = made.json()["id"]
        assert "the answer is 42" in str(stub.asked[-1].body)
        [stored] = client.get(f"/v1/responses/{response_id}/input_items").json()["data"]
        assert stored["content"] == [part]
        again = {"input": "and then?", "previous_response_id": response_id}
        assert client.post("/v1/responses", json=again).status_code == 200
        assert "the answer is 42" in str(stub.asked[-1].body)
        client.delete(f"/v1/responses/{response_id}")
    assert input_items(asking, response_id) == 0

    def check_chat(part: dict[str, Any], expected: str) -> None:
        with asking.http() as client:
            made = client.post("/v1/chat/completions", json={"messages": message(part)})
        assert made.status_code == 200, made.text
        assert expected in str(stub.asked[-1].body)

    check_chat({"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}, "the answer is 42")
    check_chat({"type": "file", "file": {"file_data": "cGxhaW4="}}, "plain")


@pytest.mark.parametrize(
    ("part", "field", "code"),
    [
        ({"file_url": "http://127.0.0.1/x.pdf"}, "file_url", "unsupported_file_url"),
        ({"file_id": "file-1"}, "file_id", "unsupported_content_type"),
        ({"filename": "x"}, "file_data", None),
        ({"file_data": "%%%"}, "file_data", "invalid_file_data"),
        ({"file_data": "data:text/plain,hello"}, "file_data", "invalid_file_data"),
        ({"file_data": ""}, "file_data", "invalid_file_data"),
        ({"file_data": "A" * 9_400_000}, "file_data", "file_too_large"),
        ({"file_data": 5}, "file_data", None),
        ({"file_data": "eA==", "filename": 5}, "filename", None),
    ],
    ids=range(9),
)
def test_a_bad_file_is_refused_by_its_field(server: Server, part: dict[str, Any], field: str, code: str | None) -> None:
    with server.http() as client:
        refused = client.post("/v1/responses", json={"input": message({"type": "input_file", **part})})
        over_chat = client.post("/v1/chat/completions", json={"messages": message({"type": "file", "file": part})})
    assert (refused.status_code, over_chat.status_code) == (400, 400)
    error = refused.json()["error"]
    assert error["param"] == f"input[0].content[0].{field}"
    assert over_chat.json()["error"]["param"].startswith("messages[0].content[0]")
    if code is not None:
        assert error["code"] == code


def test_addresses_can_be_passed_on_to_upstreams_that_fetch(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    server = make_server(
        HERMES_PROVIDER="custom",
        HERMES_BASE_URL=stub.url,
        HERMES_MODEL="m",
        HERMES_API_MODE="codex_responses",
        HERMES_FILE_URLS="pass",
    )
    part = {"type": "input_file", "file_url": "https://example.org/a.pdf"}
    with server.http() as client:
        assert client.post("/v1/responses", json={"input": message(part)}).status_code == 200
    assert part in stub.asked[-1].body["input"][0]["content"]


def test_the_files_of_one_owner_do_not_hold_up_those_of_another(asking: Server) -> None:
    """Of each owner one file is read at a time, so that there is a reader for the other."""
    with asking.http(create_key(asking, "busy")) as busy, asking.http(create_key(asking, "other")) as other:
        ids = []
        for number in range(3):
            part = {"type": "input_file", "filename": "slow.pdf", "file_data": as_data_url(slow_pdf(number))}
            made = busy.post("/v1/responses", json={"input": message(part), "background": True})
            ids.append(made.json()["id"])
        part = {"type": "input_file", "filename": "a.pdf", "file_data": PDF}
        done = other.post("/v1/responses", json={"input": message(part)})
        assert done.json()["status"] == "completed", done.text
        counted = other.post("/v1/responses/input_tokens", json={"input": message(part)})
        assert counted.status_code == 200, counted.text
        assert busy.get(f"/v1/responses/{ids[-1]}").json()["status"] == "in_progress"
        for response_id in ids:
            busy.post(f"/v1/responses/{response_id}/cancel")
