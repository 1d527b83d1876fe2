"""``ws://…/v1/responses``: the same turns and the same events, on one connection."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import openai
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from responses_app.protocol.sse import decode_frame
from tests.support.checker import check_log
from tests.support.other_servers import PlainDaphne, Uvicorn
from tests.support.people import create_key
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.stored_rows import count_rows, status_of, stored_rows
from tests.support.websockets import Socket, socket

pytestmark = pytest.mark.any_database


def test_frames_are_the_events_of_the_log(server: Server) -> None:
    with socket(server, X_Hermes_Session_Key="socket-key") as ws:
        ws.create(input="think, then calculate 6*7", model="hermes-agent")
        found = ws.turn()
        response_id = found[0]["response"]["id"]
        assert [event["sequence_number"] for event in found] == list(range(len(found)))
        replayed = [decode_frame(frame) for frame in server.replay(response_id)[:-1]]
        assert found == replayed
    check_log(server, response_id)
    assert stored_rows(server, "response", "session_key", id=response_id) == [("socket-key",)]


def test_the_sdk_takes_several_turns_on_one_socket(server: Server) -> None:
    with server.openai().responses.connect() as connection:
        previous: str | None = None
        for words in ("first socket turn", "second socket turn"):
            extra: dict[str, Any] = {} if previous is None else {"previous_response_id": previous}
            connection.response.create(model="hermes-agent", input=words, **extra)
            for event in connection:
                if event.type == "response.completed":
                    previous = event.response.id
                    break
    asked = server.model_calls("second socket turn")[0]["texts"]
    assert "first socket turn" in asked


def test_an_error_leaves_the_socket_open(server: Server) -> None:
    with socket(server) as ws:
        for message, status, code, param in (
            ("{", 400, "invalid_json", None),
            ("[]", 400, "invalid_body", None),
            ('{"type": "session.update"}', 400, "unknown_event_type", "type"),
            ('{"type": "response.create"}', 400, "missing_required_parameter", "input"),
            ('{"type": "response.create", "input": "x", "background": true}', 400, None, "background"),
            ('{"type": "response.create", "input": "x", "stream": false}', 400, None, "stream"),
            ('{"type": "response.create", "input": "x", "stream_id": 7}', 400, "invalid_type", "stream_id"),
            ('{"type": "response.create", "input": "x", "model": "unknown"}', 404, "model_not_found", "model"),
            (
                '{"type": "response.create", "input": "x", "previous_response_id": "resp_x"}',
                400,
                "previous_response_not_found",
                "previous_response_id",
            ),
        ):
            ws.connection.send(message)
            error = ws.receive()
            assert (error["type"], error["status"]) == ("error", status), message
            assert (error["error"]["code"], error["error"]["param"]) == (code, param)
        assert ws.ask(input="still open", stream=True)["type"] == "response.completed"
        ws.send(type="response.steer", previous_response_id="resp_x", input="left")
        failed = ws.receive()
        assert (failed["type"], failed["error"]["code"]) == ("response.steer.failed", "steering_not_supported")


def test_a_dropped_socket_is_resumed_over_http(server: Server) -> None:
    asked = script({"say": "before "}, {"gate": "socket-drop"}, {"say": "after"})
    with socket(server) as ws:
        ws.create(input=asked)
        seen = [ws.receive() for _ in range(4)]
    response_id = seen[0]["response"]["id"]
    server.open_gate("socket-drop")
    rest = server.replay(response_id, after=seen[-1]["sequence_number"])
    events = seen + [decode_frame(frame) for frame in rest[:-1]]
    assert events == [decode_frame(frame) for frame in server.replay(response_id)[:-1]]
    assert text(server.ended(response_id)) == "before after"


def test_an_unstored_turn_ends_with_its_socket(server: Server) -> None:
    with socket(server) as ws:
        ws.create(input=script({"say": "unstored-socket "}, {"gate": "never"}), store=False)
        response_id = ws.receive()["response"]["id"]
        eventually(lambda: server.model_calls("unstored-socket"), what="the model call")
    eventually(lambda: status_of(server, response_id) == "cancelled", what="the stop")


def test_an_unstored_turn_ends_with_a_socket_that_is_closed_while_it_sends(server: Server) -> None:
    asked = script({"say": "word " * 20_000}, {"gate": "never"})
    started: list[str] = []
    for _ in range(3):
        with socket(server) as ws:
            ws.connection.close_timeout = 0.2  # the client does not read up to the frame that answers its own
            ws.create(input=asked, store=False)
            started.append(ws.receive()["response"]["id"])
            while ws.receive()["type"] != "response.output_text.delta":
                pass
    for response_id in started:
        eventually(partial(is_status, server, response_id, "cancelled"), what="the stop")
    assert "Traceback" not in server.log


def is_status(server: Server, response_id: str, status: str) -> bool:
    return status_of(server, response_id) == status


# -- what is not stored ----------------------------------------------------------------------
def _remembered(ws: Socket, marker: str, **more: Any) -> str:
    done = ws.ask(input=f"{marker} one", store=False, **more)
    assert done["type"] == "response.completed"
    response_id: str = done["response"]["id"]
    return response_id


def test_a_socket_remembers_what_nothing_stores(server: Server) -> None:
    with socket(server) as ws:
        first = _remembered(ws, "memory", instructions="be kind")
        second = ws.ask(input="memory two", store=False, previous_response_id=first)["response"]
        assert second["previous_response_id"] == first
        third = ws.ask(input="memory three", store=True, previous_response_id=second["id"])["response"]
    call = server.model_calls("memory three")[0]
    assert [words for words in call["texts"] if words.startswith("memory")] == [
        "memory one",
        "memory two",
        "memory three",
    ]
    assert call["instructions"] == "be kind"
    assert count_rows(server, "inputitem", response_id=first) == 0
    with socket(server) as other:
        refused = other.ask(input="x", store=False, previous_response_id=first)
    assert refused["error"]["code"] == "previous_response_not_found"
    check_log(server, third["id"])


def test_what_is_not_stored_goes_on_from_what_is(server: Server) -> None:
    stored = server.openai().responses.create(model="hermes-agent", input="mixed one")
    with socket(server) as ws:
        second = ws.ask(input="mixed two", store=False, previous_response_id=stored.id)["response"]
        ws.ask(input="mixed three", store=False, previous_response_id=second["id"])
    texts = server.model_calls("mixed three")[0]["texts"]
    assert [words for words in texts if words.startswith("mixed")] == ["mixed one", "mixed two", "mixed three"]


@pytest.mark.parametrize("bad", [{"temperature": 9}, {"input": script({"fail": "no"})}])
def test_a_failed_continuation_forgets_what_it_continued(server: Server, bad: dict[str, Any]) -> None:
    with socket(server) as ws:
        first = _remembered(ws, "evicted")
        failed = ws.ask(**{"input": "x", "store": False, "previous_response_id": first, **bad})
        assert failed["type"] in ("error", "response.failed")
        again = ws.ask(input="x", store=False, previous_response_id=first)
    assert (again["status"], again["error"]["code"]) == (400, "previous_response_not_found")


def test_a_turn_can_be_prepared_without_a_model(server: Server) -> None:
    with socket(server) as ws:
        ws.create(input="prepared context", store=False, generate=False)
        found = ws.turn()
        assert [e["type"] for e in found] == ["response.created", "response.in_progress", "response.completed"]
        assert server.model_calls("prepared context") == []
        done = ws.ask(input="prepared question", store=False, previous_response_id=found[0]["response"]["id"])
    assert done["type"] == "response.completed"
    assert server.model_calls("prepared question")[0]["texts"] == ["prepared context", "prepared question"]


# -- lanes -----------------------------------------------------------------------------------
def test_turns_of_a_lane_wait_and_lanes_do_not(server: Server) -> None:
    with socket(server) as ws:
        ws.create(input=script({"gate": "lane"}, {"say": "slow"}), stream_id="a")
        ws.create(input="behind it", stream_id="a")
        ws.create(input="beside it", stream_id="b")
        found = [ws.receive()]
        while (found[-1]["type"], found[-1]["stream_id"]) != ("response.completed", "b"):
            found.append(ws.receive())
        assert len({e["response"]["id"] for e in found if e["type"] == "response.created"}) == 2
        server.open_gate("lane")
        ends = [ws.turn()[-1], ws.turn()[-1]]
    assert [event["stream_id"] for event in ends] == ["a", "a"]
    assert text(ends[0]["response"]) == "slow"


# -- who may connect -------------------------------------------------------------------------
def refused(server: Server, **options: Any) -> tuple[int, dict[str, Any]]:
    with pytest.raises(InvalidStatus) as caught, socket(server, **options):
        pass
    answer = caught.value.response
    assert answer.headers["x-request-id"]
    return answer.status_code, json.loads(answer.body)["error"]


def test_a_handshake_is_refused_as_any_request(server: Server) -> None:
    assert refused(server, key="wrong")[0] == 401
    assert refused(server, path="/v1/nowhere")[1]["code"] == "unknown_path"
    assert refused(server, Origin="https://evil.example") == (
        403,
        refused(server, Origin="null")[1]
        | {
            "message": "Web pages of 'https://evil.example' may not use this server. "
            "Its operator can add them to API_SERVER_CORS_ORIGINS."
        },
    )
    assert refused(server, X_Hermes_Session_Id="a/b")[1]["param"] == "X-Hermes-Session-Id"
    with socket(server, Origin=server.url) as ws:
        assert ws.ask(input="own page")["type"] == "response.completed"


def test_a_page_on_the_list_may_connect(make_server: Callable[..., Server]) -> None:
    server = make_server(API_SERVER_CORS_ORIGINS="https://chat.example.com")
    with socket(server, Origin="https://chat.example.com") as ws:
        assert ws.ask(input="x")["type"] == "response.completed"


def refusal(ws: Socket) -> int | None:
    """The status of a refused turn, or the code with which the server closes the socket."""
    try:
        status: int = ws.ask(input="y")["status"]
    except ConnectionClosed as closed:
        return None if closed.rcvd is None else closed.rcvd.code
    return status


def test_a_revoked_key_ends_the_turns(server: Server) -> None:
    secret = create_key(server, "socket-revoked")
    with socket(server, key=secret) as ws:
        assert ws.ask(input="x")["type"] == "response.completed"
        server.manage("revokekey", "socket-revoked")
        assert refusal(ws) in (401, 1008)  # the server finds sockets of revoked keys by itself too


# -- limits ----------------------------------------------------------------------------------
def closing_code(ws: Socket) -> int | None:
    """Whatever still comes, until the server has closed."""
    with pytest.raises(ConnectionClosed) as closed:
        list(iter(ws.receive, None))
    return None if closed.value.rcvd is None else closed.value.rcvd.code


@pytest.mark.parametrize(("kind", "code"), [(Server, 1001), (PlainDaphne, 1000)])
def test_an_old_socket_ends_and_no_turn_is_cut(
    make_server: Callable[..., Server], kind: type[Server], code: int
) -> None:
    server = make_server(kind, TEST_SOCKET_SECS="1")
    server.manage("shell", "-v0", "-c", "from gateway_app.operations.first_start import ensure_admin; ensure_admin()")
    with socket(server) as ws:
        ws.create(input=script({"gate": "old"}, {"say": "an old socket"}), store=False)
        assert [ws.receive()["type"], ws.receive()["type"]] == ["response.created", "response.in_progress"]

        def is_over() -> bool:
            end = ws.ask(input="another", stream_id="beside")
            assert end["stream_id"] == "beside"
            return end["type"] == "error" and bool(end["error"]["code"] == "websocket_connection_limit_reached")

        eventually(is_over, what="the end of its hour")
        server.open_gate("old")
        assert text(ws.turn()[-1]["response"]) == "an old socket"
        assert ws.receive()["error"]["code"] == "websocket_connection_limit_reached"
        assert closing_code(ws) == code


def test_a_message_over_the_limit_is_refused(server: Server) -> None:
    with socket(server) as ws:
        assert ws.ask(input="x" * 2_000_000)["type"] == "response.completed"
        ws.create(input="x" * 10_000_001)
        assert closing_code(ws) == 1009


@pytest.mark.parametrize("kind", [Uvicorn, PlainDaphne])
def test_other_servers_serve_it_too(make_server: Callable[..., Server], kind: type[Server]) -> None:
    server = make_server(kind)
    server.manage("shell", "-v0", "-c", "from gateway_app.operations.first_start import ensure_admin; ensure_admin()")
    with socket(server) as ws:
        assert ws.ask(input="x")["type"] == "response.completed"
    with pytest.raises(InvalidStatus) as caught, socket(server, key="wrong"):
        pass
    assert caught.value.response.status_code in (401, 403)


def test_the_sdk_sees_why_it_is_refused(server: Server) -> None:
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0)
    with pytest.raises(Exception, match="401"), client.responses.connect(max_retries=0):
        pass
    client.close()
