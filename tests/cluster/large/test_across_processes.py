"""What clients and operators do through one process to the work of another, at bad moments."""

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.support.approvals import decide, until_parked
from tests.support.checker import check_log
from tests.support.cluster import Cluster, frozen
from tests.support.people import create_key
from tests.support.server import Server, created_id, events, eventually, frames, script, streaming, text
from tests.support.stored_rows import count_rows, status_of, stored_rows
from tests.support.websockets import socket

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]
GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})
DONE = b"data: [DONE]\n\n"
CHAT = "/v1/chat/completions"


def begin(server: Server, asked: str = GATED, key: str | None = None) -> str:
    made = server.openai(key).responses.create(model="hermes-agent", input=asked, background=True)
    eventually(lambda: server.openai(key).responses.retrieve(made.id).output_text == "before ")
    return str(made.id)


@contextmanager
def reading(server: Server, response_id: str, key: str | None = None) -> Iterator[Iterator[bytes]]:
    path = f"/v1/responses/{response_id}"
    with server.http(key) as client, client.stream("GET", path, params={"stream": "true"}) as answer:
        assert answer.status_code == 200, answer.read()
        yield frames(answer)


def holder(server: Server, response_id: str) -> str:
    [(owner,)] = stored_rows(server, "response", "lease_owner", id=response_id)
    return str(owner)


def test_a_turn_of_a_frozen_worker_is_cancelled_through_the_other_web_process(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    worker = cluster.worker()
    first, second = cluster.web(), cluster.web()
    response_id = begin(first)
    with reading(first, response_id) as received:
        with frozen(worker):
            second.openai().responses.cancel(response_id)
            assert second.ended(response_id, 20)["status"] == "cancelled"
            assert b'"status":"cancelled"' in list(received)[-2]
        before = second.body(response_id)
    eventually(lambda: "was overtaken" in worker.log, 20, "the end of the first attempt")
    assert len(first.model_calls("before ")) == 2  # it began and was stopped: no attempt asked again
    assert second.body(response_id) == before


def test_a_decision_on_one_process_continues_a_turn_whose_worker_is_gone(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    worker = cluster.worker()
    first, second = cluster.web(), cluster.web()
    asked = script({"say": "before "}, {"call": "guarded", "arguments": {"text": "ran"}}, {"say": "after"})
    made = first.openai().responses.create(model="hermes-agent", input=asked, background=True)
    until_parked(first, made.id)
    with reading(first, made.id) as received:
        worker.kill()
        assert decide(second, made.id, "once").status_code == 200
        assert decide(first, made.id, "once").status_code == 409
        cluster.worker()
        assert list(received)[-1] == DONE
    assert "after" in text(second.ended(made.id))


def test_a_response_that_one_process_deletes_ends_for_its_readers_and_its_worker(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    cluster.worker()
    first, second = cluster.web(), cluster.web()
    response_id = begin(first)
    with reading(first, response_id) as received:
        with second.http() as client:
            assert client.delete(f"/v1/responses/{response_id}").status_code == 200
            assert client.get(f"/v1/responses/{response_id}").status_code == 404
        found = list(received)
        assert found[-1] == DONE
        assert b'"status":"cancelled"' in found[-2]
    eventually(lambda: status_of(first, response_id) == "cancelled", what="the end of the turn")
    with first.http() as client:
        assert client.get(f"/v1/responses/{response_id}").status_code == 404


def test_requests_with_one_key_through_two_processes_are_one_response(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.worker()
    webs = [cluster.web(), cluster.web()]

    def ask(number: int, web: Server) -> list[bytes]:
        asked = f"For number {number}, write 20 words at 50 words per second"
        body = {"model": "hermes-agent", "input": asked, "stream": True}
        headers = {"Idempotency-Key": f"key-{number}"}
        with web.http() as client, client.stream("POST", "/v1/responses", json=body, headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            return list(frames(answer))

    with ThreadPoolExecutor(32) as pool:
        asked = [(number, web) for number in range(10) for web in webs for _ in range(2)]
        found = list(pool.map(lambda pair: ask(*pair), asked))
    for number in range(10):
        four = found[4 * number : 4 * number + 4]
        whole = [frame for frame in four[0] if not frame.startswith(b":")]
        assert whole[-1] == DONE
        assert all([frame for frame in each if not frame.startswith(b":")] == whole for each in four)
    assert count_rows(webs[0], "response") == 10
    started = [call for call in webs[0].model_calls("For number") if call["event"] == "started"]
    assert len(started) == 10


def test_a_retry_through_another_process_outlives_the_client_that_left(make_cluster: Callable[..., Cluster]) -> None:
    """A chat completion ends with its client; one that asks again through another process is a client too."""
    cluster = make_cluster()
    cluster.worker()
    first, second = cluster.web(), cluster.web()
    body = {"model": "hermes-agent", "messages": [{"role": "user", "content": GATED}], "stream": True}
    headers = {"Idempotency-Key": "once"}
    with second.http() as staying:
        with first.http() as leaving, leaving.stream("POST", CHAT, json=body, headers=headers) as left:
            received_by_left = left.iter_raw()  # without a name, the client would leave here
            until(b"before", received_by_left)
            again = staying.send(staying.build_request("POST", CHAT, json=body, headers=headers), stream=True)
            received = again.iter_raw()
            until(b"before", received)
        first.openai().responses.create(model="hermes-agent", input="hello")  # behind what the end of the client wrote
        first.open_gate("go")
        assert b"after" in b"".join(received)
        again.close()


def until(marker: bytes, received: Iterator[bytes]) -> None:
    seen = b""
    while marker not in seen:
        seen += next(received)


def test_turns_of_a_conversation_through_two_processes_run_one_after_another(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    cluster.worker()
    cluster.worker()
    webs = [cluster.web(), cluster.web()]
    conversation = webs[0].openai().conversations.create().id

    def ask(number: int) -> str:
        asked = f"number {number}: write 5 words at 100 words per second"
        responses = webs[number % 2].openai().responses
        return str(responses.create(model="hermes-agent", input=asked, conversation=conversation).id)

    with ThreadPoolExecutor(12) as pool:
        ids = list(pool.map(ask, range(12)))
    rows = stored_rows(webs[0], "response", "id", "turn", "started_at", "finished_at", order_by="turn")
    assert sorted(found for found, *_ in rows) == sorted(ids)
    for (_, _, _, finished_at), (_, _, started_at, _) in itertools.pairwise(rows):
        assert finished_at <= started_at
    found = webs[1].openai().conversations.items.list(conversation, order="asc", limit=100)
    roles = [getattr(item, "role", None) for item in found]
    assert roles == ["user", "assistant"] * 12
    for response_id in ids:
        check_log(webs[1], response_id)


def test_a_turn_begun_over_http_is_continued_and_cancelled_over_sockets_of_another_process(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster()
    cluster.worker()
    first, second = cluster.web(), cluster.web()
    response_id = begin(first)
    with socket(second) as ws:
        ws.create(model="hermes-agent", input=script({"say": "next"}), previous_response_id=response_id)
        assert ws.receive()["type"] == "response.created"
        first.open_gate("go")
        assert ws.turn()[-1]["type"] == "response.completed"
    assert text(second.ended(response_id)) == "before after"
    with socket(second) as ws:
        ws.create(model="hermes-agent", input=script({"say": "before "}, {"gate": "never"}))
        by_socket = ws.receive()["response"]["id"]
        eventually(lambda: text(first.body(by_socket)) == "before ")
        first.openai().responses.cancel(by_socket)
        assert ws.turn()[-1]["response"]["status"] == "cancelled"


def test_an_unstored_turn_is_cancelled_through_the_other_process(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.worker()
    first, second = cluster.web(), cluster.web()
    with streaming(first, model="hermes-agent", input=GATED, store=False) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: len(first.model_calls("before ")) == 1)
        with second.http() as client:
            assert client.post(f"/v1/responses/{response_id}/cancel").status_code == 200
            assert client.get(f"/v1/responses/{response_id}").status_code == 404
        [*_, last] = events(list(received))
        assert last["response"]["status"] == "cancelled"


def test_the_only_worker_drains_and_the_web_processes_take_what_comes(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    worker = cluster.worker()
    web = cluster.web()
    process = worker.process
    assert process is not None
    running = begin(web)
    [(host,)] = stored_rows(web, "runtimeprocess", "host", pid=process.pid)
    web.manage("drain", f"{host}:{process.pid}")
    eventually(lambda: stored_rows(web, "runtimeprocess", "is_draining", pid=process.pid) == [(1,)])
    by_web = begin(web)
    assert stored_rows(web, "runtimeprocess", "role", id=holder(web, by_web)) == [("web",)]
    web.open_gate("go")
    assert text(web.ended(running)) == text(web.ended(by_web)) == "before after"
    assert process.wait(20) == 0
    assert stored_rows(web, "response", "attempt", id=running) == [(1,)]


def test_commands_work_beside_a_cluster(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.worker()
    first, second = cluster.web(), cluster.web()
    eve = create_key(first, "eve")
    ended = first.openai().responses.create(model="hermes-agent", input="hello").id
    kept, erased = begin(first), begin(second, key=eve)
    with reading(second, kept) as received, reading(first, erased, eve) as of_eve:
        done = first.managed("erase_owner", "eve")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["erased"]["responses"] == 1
        with pytest.raises(Exception):  # noqa: B017, PT011
            list(of_eve)
        first.manage("prune_responses", "--days", "1")
        archive = first.manage("export_responses")
        assert (ended in archive, kept in archive) == (True, False)
        first.open_gate("go")
        assert list(received)[-1] == DONE
    assert text(second.ended(kept)) == "before after"
    assert count_rows(first, "response", id=erased) == 0
    for member in cluster.members:
        assert "Traceback" not in member.log, member.log


def test_a_process_for_pages_cancels_decides_and_deletes_what_workers_run(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.worker()
    web = cluster.web()
    pages = cluster.web(HERMES_DISPATCH="none")
    cancelled, deleted = begin(web), begin(web)
    pages.openai().responses.cancel(cancelled)
    assert web.ended(cancelled)["status"] == "cancelled"
    with reading(web, deleted) as received:
        with pages.http() as client:
            assert client.delete(f"/v1/responses/{deleted}").status_code == 200
        assert list(received)[-1] == DONE
    asked = script({"say": "before "}, {"call": "guarded", "arguments": {"text": "ran"}})
    made = web.openai().responses.create(model="hermes-agent", input=asked, background=True)
    until_parked(web, made.id)
    with reading(pages, made.id) as received:
        assert decide(pages, made.id, "once").status_code == 200
        assert list(received)[-1] == DONE
    assert web.ended(made.id)["status"] == "completed"
