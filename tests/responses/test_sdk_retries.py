"""The SDKs send a request again when they lose patience or the connection; the agent runs once."""

from collections.abc import Callable
from typing import Any

import httpx
import openai

from tests.support.server import (
    Server,
    created_id,
    eventually,
    frames,
    script,
    streaming,
)
from tests.support.stored_rows import count_rows, stored_rows

RETRY = {"x-stainless-retry-count": "1"}


def starts(server: Server, marker: str) -> int:
    return len([call for call in server.model_calls(marker) if call["event"] == "started"])


def retried(server: Server, **body: Any) -> httpx.Response:
    with server.http() as client:
        return client.post("/v1/responses", json=body, headers=RETRY)


def test_an_sdk_that_lost_patience_joins_its_first_request(server: Server) -> None:
    counts: list[str] = []

    def note(request: Any) -> None:
        counts.append(request.headers["x-stainless-retry-count"])
        if len(counts) == 2:
            server.open_gate("sdk-retry")

    http = openai.DefaultHttpxClient(event_hooks={"request": [note]})
    asked = script({"say": "sdk-retry "}, {"gate": "sdk-retry"}, {"say": "end"})
    with openai.OpenAI(
        base_url=f"{server.url}/v1", api_key=server.key, max_retries=1, timeout=2, http_client=http
    ) as client:
        answer = client.responses.create(model="hermes-agent", input=asked)
    assert counts == ["0", "1"]
    assert answer.output_text == "sdk-retry end"
    assert starts(server, "sdk-retry") == 1


def test_a_retry_joins_the_stream_from_its_first_event(server: Server) -> None:
    asked = script({"say": "stream-retry "}, {"gate": "stream-retry"}, {"say": "end"})
    with streaming(server, input=asked) as (_, received):
        response_id = created_id(next(received))
    with (
        server.http() as client,
        client.stream("POST", "/v1/responses", json={"input": asked, "stream": True}, headers=RETRY) as answer,
    ):
        assert answer.headers["idempotency-replayed"] == "true"
        again = frames(answer)
        assert created_id(next(again)) == response_id
        server.open_gate("stream-retry")
        assert list(again)[-1] == b"data: [DONE]\n\n"
    assert starts(server, "stream-retry") == 1


def test_two_requests_that_are_alike_are_two(server: Server) -> None:
    bodies = [server.openai().responses.create(model="hermes-agent", input="alike") for _ in range(2)]
    assert bodies[0].id != bodies[1].id
    assert retried(server, model="hermes-agent", input="alike").json()["id"] == bodies[1].id


def test_a_retry_of_another_body_or_session_or_owner_runs(server: Server, other_tenant: str) -> None:
    first = server.openai().responses.create(model="hermes-agent", input="mine alone")
    others = [
        retried(server, model="hermes-agent", input="mine alone", temperature=0.5),
        httpx.post(
            f"{server.url}/v1/responses",
            json={"model": "hermes-agent", "input": "mine alone"},
            headers=RETRY | {"Authorization": f"Bearer {server.key}", "X-Hermes-Session-Id": "retry-elsewhere"},
        ),
    ]
    with server.http(other_tenant) as stranger:
        sent = {"model": "hermes-agent", "input": "mine alone"}
        others.append(stranger.post("/v1/responses", json=sent, headers=RETRY))
    assert {answer.status_code for answer in others} == {200}
    assert len({first.id, *(answer.json()["id"] for answer in others)}) == 4


def test_a_retry_after_a_failure_runs_again(server: Server) -> None:
    asked = script({"fail": "retry-after-failure"})
    with server.http() as client:
        failed = client.post("/v1/responses", json={"input": asked}).json()
    assert failed["status"] == "failed"
    assert retried(server, input=asked).json()["id"] != failed["id"]


def test_a_retry_runs_again_when_the_first_ended_with_its_client(server: Server) -> None:
    asked = script({"say": "unstored-retry "}, {"gate": "unstored-retry"}, {"say": "end"})
    with streaming(server, input=asked, store=False) as (_, received):
        first = created_id(next(received))
    eventually(
        lambda: stored_rows(server, "response", "status", id=first) == [("cancelled",)], what="the end of the first"
    )
    server.open_gate("unstored-retry")
    again = retried(server, input=asked, store=False)
    assert again.status_code == 200
    assert again.json()["id"] != first


def test_joining_retries_can_be_turned_off(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_JOIN_RETRIES="off")
    first = server.openai().responses.create(model="hermes-agent", input="off")
    again = retried(server, model="hermes-agent", input="off")
    assert again.json()["id"] != first.id
    assert "idempotency-replayed" not in again.headers
    assert count_rows(server, "idempotencykey") == 0
