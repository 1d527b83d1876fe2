"""A request that is sent again is the same response, from any client and however it was first answered."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.support.server import (
    Server,
    created_id,
    events,
    eventually,
    frames,
    script,
    text,
)
from tests.support.stored_rows import count_rows, stored_rows

RACERS = 50


def post(server: Server, key: str | None, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    sent = (headers or {}) | ({} if key is None else {"Idempotency-Key": key})
    with server.http() as client:
        return client.post("/v1/responses", json=body, headers=sent)


@contextmanager
def stream(server: Server, key: str, **body: Any) -> Iterator[tuple[httpx.Response, Iterator[bytes]]]:
    headers = {"Idempotency-Key": key}
    with (
        server.http() as client,
        client.stream("POST", "/v1/responses", json={"stream": True, **body}, headers=headers) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        yield answer, frames(answer)


async def race(urls: list[str], key: str, body: dict[str, Any]) -> list[httpx.Response]:
    headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"race-{body['store']}"}
    limits = httpx.Limits(max_connections=RACERS)
    async with httpx.AsyncClient(headers=headers, limits=limits, timeout=60) as client:
        asked = [
            client.post(f"{urls[n % len(urls)]}/v1/responses", json={**body, "stream": n % 2 == 0})
            for n in range(RACERS)
        ]
        return list(await asyncio.gather(*asked))


@pytest.mark.parametrize("store", [True, False])
async def test_of_fifty_that_race_one_runs(server: Server, store: bool) -> None:
    marker = f"racing-{store}"
    asked = script({"say": f"{marker} "}, {"gate": marker}, {"say": "end"})
    racing = asyncio.create_task(race([server.url], server.key, {"input": asked, "store": store}))
    await asyncio.to_thread(eventually, lambda: server.model_calls(marker), 30, "the model call")
    assert count_rows(server, "idempotencykey", key=f"race-{store}") == 1
    with stream(server, f"race-{store}", input=asked, store=store) as (answer, received):
        assert answer.headers["idempotency-replayed"] == "true"  # live, from event 0
        created_id(next(received))
        server.open_gate(marker)
        last = events(list(received))[-1]
    answers = await racing
    assert {answer.status_code for answer in answers} == {200}
    streamed = [events([f + b"\n\n" for f in a.content.split(b"\n\n") if f]) for a in answers[::2]]
    plain = [answer.json() for answer in answers[1::2]]
    assert {found[-1]["response"]["id"] for found in streamed} | {body["id"] for body in plain} == {
        last["response"]["id"]
    }
    assert all(found == streamed[0] and found[-1] == last for found in streamed)
    assert {text(body) for body in plain} == {f"{marker} end"}
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert len([call for call in server.model_calls(marker) if call["event"] == "started"]) == 1


async def test_one_runs_where_two_processes_share_the_database(make_server: Callable[..., Server]) -> None:
    one = make_server()
    other = Server(one.home, **{name: one.env[name] for name in ("DATABASE_URL",) if name in one.env}).start()
    try:
        answers = await race([one.url, other.url], one.key, {"input": "two processes", "store": True})
    finally:
        other.kill()
    assert {answer.status_code for answer in answers} == {200}
    assert count_rows(one, "response") == 1
    assert len([call for call in one.model_calls("two processes") if call["event"] == "started"]) == 1


def test_a_repetition_is_replayed_also_after_a_restart(make_server: Callable[..., Server]) -> None:
    server = make_server()
    first = post(server, "again", input="replay me", metadata={"b": "2", "a": "1"})
    assert "idempotency-replayed" not in first.headers
    server.kill()
    server.start()
    second = post(server, "again", metadata={"a": "1", "b": "2"}, input="replay me")
    assert second.json() == first.json()
    assert second.headers["idempotency-replayed"] == "true"
    assert second.headers["x-hermes-session-id"] == first.headers["x-hermes-session-id"]
    with stream(server, "again", input="replay me", metadata={"b": "2", "a": "1"}) as (answer, received):
        assert answer.headers["idempotency-replayed"] == "true"
        assert list(received) == server.replay(first.json()["id"])


def test_another_request_under_the_same_key_is_refused(server: Server) -> None:
    post(server, "taken", input="one")
    for refused in (
        post(server, "taken", input="two"),
        post(server, "taken", {"X-Hermes-Session-Id": "elsewhere"}, input="one"),
    ):
        assert refused.status_code == 422
        assert refused.json()["error"]["code"] == "idempotency_key_reused"
        assert refused.json()["error"]["param"] == "Idempotency-Key"


def test_keys_belong_to_their_owner(server: Server, other_tenant: str) -> None:
    mine = post(server, "shared-name", input="mine")
    with server.http(other_tenant) as stranger:
        theirs = stranger.post("/v1/responses", json={"input": "mine"}, headers={"Idempotency-Key": "shared-name"})
    assert theirs.status_code == 200
    assert theirs.json()["id"] != mine.json()["id"]


@pytest.mark.parametrize("key", ["", "with space", "x" * 256, "naïve"])
def test_a_bad_key_is_named(server: Server, key: str) -> None:
    with server.http() as client:
        sent = [(b"Idempotency-Key", key.encode())]
        refused = client.post("/v1/responses", json={"input": "x"}, headers=sent)
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert (error["param"], error["code"]) == ("Idempotency-Key", "invalid_idempotency_key")


def test_a_refused_request_leaves_its_key_free(server: Server) -> None:
    refused = post(server, "refused-once", input="x", previous_response_id="resp_unknown")
    assert refused.status_code == 404
    assert post(server, "refused-once", input="y").status_code == 200


def test_an_expired_key_is_free_again_and_forgotten(server: Server) -> None:
    first = post(server, "old", input="x").json()
    shell = (
        "from datetime import timedelta; from django.utils import timezone; "
        "from responses_app.models import IdempotencyKey as K; "
        "K.objects.filter(key__in=['old', 'older']).update(expires_at=timezone.now() - timedelta(seconds=1))"
    )
    post(server, "older", input="x")
    server.manage("shell", "-v0", "-c", shell)
    assert post(server, "old", input="another").json()["id"] != first["id"]
    eventually(lambda: count_rows(server, "idempotencykey", key="older") == 0, what="the end of an expired key")


def test_what_was_not_stored_can_not_be_replayed(server: Server) -> None:
    assert post(server, "unstored", input="x", store=False).status_code == 200
    refused = post(server, "unstored", input="x", store=False)
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "idempotent_result_not_stored"
    assert refused.headers["x-should-retry"] == "false"


def test_a_client_that_leaves_does_not_stop_the_run_of_another(server: Server) -> None:
    asked = {"input": script({"say": "shared "}, {"gate": "shared-run"}, {"say": "end"}), "store": False}
    with stream(server, "shared-run", **asked) as (_, first):
        created_id(next(first))
        with stream(server, "shared-run", **asked) as (_, second):
            response_id = created_id(next(second))
        with stream(server, "shared-run", **asked) as (_, third):
            created_id(next(third))
    eventually(
        lambda: stored_rows(server, "response", "status", "cancel_requested_at", id=response_id)[0][0] == "cancelled",
        what="the end, with the last client",
    )

    joined: list[bytes] = []

    def stay() -> None:
        with stream(server, "shared-run-2", **asked) as (_, received):
            joined.extend(received)

    with stream(server, "shared-run-2", **asked) as (_, first):
        created_id(next(first))
        staying = threading.Thread(target=stay)
        staying.start()
        eventually(lambda: joined, what="the second reader")
    server.open_gate("shared-run")
    staying.join(20)
    assert events(joined)[-1]["response"]["status"] == "completed"
