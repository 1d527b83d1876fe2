"""Cancel and delete: partial output is kept by the one and erased by the other."""

import threading

from tests.support.server import (
    Server,
    created_id,
    events,
    eventually,
    script,
    streaming,
    text,
)
from tests.support.stored_rows import stored_rows

ENDLESS = script({"say": "some words "}, {"gate": "never"})


def start(server: Server, asked: str = ENDLESS) -> str:
    response_id = server.openai().responses.create(model="hermes-agent", input=asked, background=True).id
    if asked == ENDLESS:
        eventually(lambda: text(server.body(response_id)) == "some words ")
    return response_id


def test_a_running_response_is_cancelled_with_what_it_had(server: Server) -> None:
    response_id = start(server)
    cancelled = server.openai().responses.cancel(response_id)
    assert cancelled.status == "cancelled"
    assert cancelled.output_text == "some words "
    assert cancelled.output[0].status == "incomplete"  # type: ignore[union-attr]
    last = events(server.replay(response_id))[-1]
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")


def test_cancelling_twice_or_after_the_end_changes_nothing(server: Server) -> None:
    client = server.openai()
    response_id = start(server)
    first = client.responses.cancel(response_id)
    assert client.responses.cancel(response_id) == first
    done = client.responses.create(model="hermes-agent", input="hello")
    assert client.responses.cancel(done.id).status == "completed"


def test_readers_of_a_cancelled_response_get_the_terminal_event(server: Server) -> None:
    with streaming(server, input=ENDLESS) as (_, received):
        response_id = created_id(next(received))
        server.openai().responses.cancel(response_id)
        rest = list(received)
    assert events(rest)[-1]["response"]["status"] == "cancelled"
    assert rest[-1] == b"data: [DONE]\n\n"


def test_a_waiting_turn_is_cancelled_before_its_turn(server: Server) -> None:
    client = server.openai()
    running = start(server)
    waiting = client.responses.create(
        model="hermes-agent", input="never asked", background=True, previous_response_id=running
    )
    assert client.responses.cancel(waiting.id).status == "cancelled"
    assert server.body(running)["status"] == "in_progress"
    assert not server.model_calls("never asked")
    client.responses.cancel(running)


def test_cancels_that_race_settle_once(server: Server) -> None:
    response_id = start(server)
    found: list[str | None] = []
    threads = [
        threading.Thread(target=lambda: found.append(server.openai().responses.cancel(response_id).status))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == ["cancelled"] * 8
    kinds = [event["type"] for event in events(server.replay(response_id))]
    assert kinds.count("response.incomplete") == 1


def test_a_deleted_response_leaves_only_a_tombstone(server: Server) -> None:
    response_id = server.openai().responses.create(model="hermes-agent", input="calculate 1+1").id
    server.openai().responses.delete(response_id)
    assert_erased(server, response_id)
    with server.http() as client:
        again = client.delete(f"/v1/responses/{response_id}")
    assert (again.status_code, again.json()["error"]["code"]) == (404, "response_deleted")


def test_deleting_a_running_response_cancels_it_and_readers_see_the_end(server: Server) -> None:
    with streaming(server, input=ENDLESS) as (_, received):
        response_id = created_id(next(received))
        server.openai().responses.delete(response_id)
        with server.http() as client:
            assert client.get(f"/v1/responses/{response_id}").status_code == 404
        assert events(list(received))[-1]["response"]["status"] == "cancelled"
    eventually(lambda: not _segments(server, response_id), 15, "the erasure")
    assert_erased(server, response_id)


def test_a_chain_goes_on_without_a_deleted_turn_and_says_so(server: Server) -> None:
    client = server.openai()
    first = client.responses.create(model="hermes-agent", input="alpha")
    second = client.responses.create(model="hermes-agent", input="beta", previous_response_id=first.id)
    client.responses.delete(first.id)
    third = client.responses.with_raw_response.create(
        model="hermes-agent", input="gamma", previous_response_id=second.id
    )
    assert first.id in third.headers["x-hermes-ignored"]
    assert 'you wrote 1 times, first: "beta"' in third.parse().output_text


def _segments(server: Server, response_id: str) -> list[tuple[object, ...]]:
    return stored_rows(server, "eventsegment", "id", response_id=response_id)


def assert_erased(server: Server, response_id: str) -> None:
    assert not _segments(server, response_id)
    assert not stored_rows(server, "inputitem", "id", response_id=response_id)
    assert stored_rows(server, "response", "request", "output", "deleted_at IS NOT NULL", id=response_id) == [
        ("{}", None, 1)
    ]
    tools = stored_rows(server, "toolevent", "arguments", "output", response_id=response_id)
    assert all(row == ("", "") for row in tools)


def test_a_cancel_at_any_moment_of_the_start_ends_the_response(server: Server) -> None:
    """Cancels that race the claim, the reading of the history and the first text."""

    def cancel_at_once(ends: list[str]) -> None:
        for _ in range(15):
            with streaming(server, input=ENDLESS) as (_, received):
                response_id = created_id(next(received))
                with server.http() as client:
                    ends.append(client.post(f"/v1/responses/{response_id}/cancel").json()["status"])

    ended: list[str] = []
    threads = [threading.Thread(target=cancel_at_once, args=(ended,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert ended == ["cancelled"] * 60
