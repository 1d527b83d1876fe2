"""A key that is revoked, and a login that ends, read nothing more; what they started goes on."""

import threading
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.people import create_key
from tests.support.server import (
    Server,
    created_id,
    eventually,
    script,
    streaming,
)
from tests.support.staff import (
    STAFF_PASSWORD,
    Operator,
    logged_in,
    make_staff,
)
from tests.support.stored_rows import stored_rows
from tests.support.websockets import Socket, socket

pytestmark = pytest.mark.any_database


def make_key(server: Server, name: str) -> str:
    return create_key(server, name)


def ended(server: Server, response_id: str) -> str:
    def look() -> str:
        (status,) = stored_rows(server, "response", "status", id=response_id)[0]
        return str(status) if status not in ("queued", "in_progress") else ""

    return str(eventually(look, 30, "the end of the work"))


def read_to_the_end(received: Iterator[bytes]) -> None:
    for _ in received:
        pass


def receive_to_the_end(ws: Socket) -> None:
    while True:
        ws.receive()


def test_a_stream_of_a_revoked_key_ends_and_its_work_goes_on(server: Server) -> None:
    key = make_key(server, "revoked-stream")
    asked = script({"say": "one "}, {"gate": "revoked-stream"}, {"say": "two"})
    with streaming(server, key, input=asked) as (_, received):
        response_id = created_id(next(received))
        server.manage("revokekey", "revoked-stream")
        with pytest.raises(httpx.TransportError):
            read_to_the_end(received)
    assert stored_rows(server, "response", "status", id=response_id) == [("in_progress",)]
    server.open_gate("revoked-stream")
    assert ended(server, response_id) == "completed"


def test_a_request_that_waits_gets_a_401(server: Server) -> None:
    key = make_key(server, "revoked-wait")
    asked = script({"gate": "revoked-wait"}, {"say": "late"})
    answers: list[httpx.Response] = []

    def ask() -> None:
        with server.http(key) as client:
            answers.append(client.post("/v1/responses", json={"input": asked}))

    waiting = threading.Thread(target=ask)
    waiting.start()
    eventually(lambda: server.model_calls("revoked-wait"))
    server.manage("revokekey", "revoked-wait")
    waiting.join(30)
    assert answers[0].status_code == 401
    server.open_gate("revoked-wait")


def test_a_websocket_of_a_revoked_key_is_closed(server: Server) -> None:
    key = make_key(server, "revoked-socket")
    with socket(server, key) as ws:
        ws.create(input=script({"say": "one "}, {"gate": "revoked-socket"}, {"say": "two"}))
        response_id = ws.receive()["response"]["id"]
        server.manage("revokekey", "revoked-socket")
        with pytest.raises(ConnectionClosed) as closed:
            receive_to_the_end(ws)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    server.open_gate("revoked-socket")
    assert ended(server, response_id) == "completed"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_what_is_not_stored_ends_with_the_stream_of_its_revoked_key(server: Server, path: str) -> None:
    name = f"revoked-unstored-{path.rpartition('/')[2]}"
    key = make_key(server, name)
    asked = script({"say": f"{name} "}, {"gate": name})
    body = {"input": asked, "messages": [{"role": "user", "content": asked}], "stream": True, "store": False}
    with server.http(key) as client, client.stream("POST", path, json=body):
        eventually(lambda: server.model_calls(name), what="the model call")
        running = stored_rows(server, "response", "id", status="in_progress", order_by="created_at")
        server.manage("revokekey", name)
        [response_id] = running[-1]
        assert ended(server, response_id) == "cancelled"


def test_what_is_not_stored_ends_with_the_socket_of_its_revoked_key(server: Server) -> None:
    key = make_key(server, "revoked-unstored-socket")
    with socket(server, key) as ws:
        ws.create(input=script({"say": "one "}, {"gate": "revoked-unstored-socket"}), store=False)
        response_id = ws.receive()["response"]["id"]
        server.manage("revokekey", "revoked-unstored-socket")
        assert ended(server, response_id) == "cancelled"


def test_other_readers_stay(server: Server) -> None:
    revoked, valid = make_key(server, "revoked-beside"), make_key(server, "valid-beside")
    asked = script({"say": "one "}, {"gate": "valid-beside"}, {"say": "two"})
    with streaming(server, revoked, input=asked) as (_, lost), streaming(server, valid, input=asked) as (_, kept):
        next(lost)
        server.manage("revokekey", "revoked-beside")
        with pytest.raises(httpx.TransportError):
            read_to_the_end(lost)
        server.open_gate("valid-beside")
        assert list(kept)[-1] == b"data: [DONE]\n\n"


def log_out(operator: Operator) -> None:
    token = operator.client.cookies.get("csrftoken") or ""
    assert operator.client.post("/admin/logout/", headers={"X-CSRFToken": token}).status_code == 200


def test_logging_out_ends_the_live_view_and_the_token(server: Server) -> None:
    make_staff(server, "leaving", "view_response", "use_playground")
    with server.http() as client:
        asked = script({"say": "one "}, {"gate": "leaving"}, {"say": "two"})
        response_id = client.post("/v1/responses", json={"input": asked, "background": True}).json()["id"]
    with logged_in(server, "leaving", STAFF_PASSWORD) as operator:
        csrf = {"X-CSRFToken": operator.client.cookies.get("csrftoken") or ""}
        token = operator.client.post("/chat/token", headers=csrf).json()["token"]
        session = operator.client.cookies["sessionid"]
        assert session not in token
        with operator.client.stream("GET", f"/live/{response_id}/events") as stream:
            assert stream.status_code == 200
            log_out(operator)
            with pytest.raises(httpx.TransportError):
                stream.read()
    with server.http(token) as client:
        assert client.get("/v1/models").status_code == 401
    server.open_gate("leaving")
    assert server.ended(response_id)["status"] == "completed"
