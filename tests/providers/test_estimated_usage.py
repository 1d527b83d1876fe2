"""A model's server that counts no tokens: every surface has the same estimate, and says that it is one."""

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.chat_client import post as post_chat
from tests.support.chat_client import stream_completion, user
from tests.support.checker import check_log
from tests.support.hermes_client import ended_run, get, post, start_run
from tests.support.migrated_database import Database
from tests.support.model_stub import Finish, Gate, ModelStub, Raw, Step, Text, sse
from tests.support.server import Server, events, eventually, streaming, text
from tests.support.session_client import create_session, read_session, send_message
from tests.support.staff import logged_in
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

HEADER = "X-Hermes-Usage"
TEXT = "some words of the model "
TEXT_TOKENS = 6
STOP = Raw(sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n")
UNCOUNTED: tuple[Step, ...] = (Text(TEXT), STOP)
NO_TOOLS: dict[str, Any] = {"tools": []}


def env_of(stub: ModelStub) -> dict[str, str]:
    return {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m-1", "HERMES_BASE_URL": stub.url}


@pytest.fixture(scope="module")
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(scope="module")
def front(database: Database, stub: ModelStub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = database.server(tmp_path_factory.mktemp("usage") / "h", Server, **env_of(stub)).start()
    yield server
    server.kill()


def create(front: Server, **fields: Any) -> httpx.Response:
    answer = post(front, "/v1/responses", {"input": "hi", **NO_TOOLS, **fields})
    assert answer.status_code == 200, answer.text
    return answer


def is_marked(front: Server, response_id: str) -> bool:
    [(is_estimated,)] = stored_rows(front, "response", "is_usage_estimated", id=response_id)
    return bool(is_estimated)


def test_a_response_that_no_upstream_counted_is_estimated_and_says_so(front: Server, stub: ModelStub) -> None:
    stub.play(*UNCOUNTED)
    made = create(front)
    usage = made.json()["usage"]
    assert usage["input_tokens"] > 0
    assert usage["output_tokens"] == TEXT_TOKENS
    assert usage["total_tokens"] == usage["input_tokens"] + TEXT_TOKENS
    assert made.headers[HEADER] == "estimated"
    read = get(front, f"/v1/responses/{made.json()['id']}")
    assert (read.headers[HEADER], read.json()["usage"]) == ("estimated", usage)
    assert is_marked(front, made.json()["id"])
    check_log(front, made.json()["id"])


def test_a_response_that_was_counted_is_not_marked(front: Server, stub: ModelStub) -> None:
    stub.play(Text(TEXT), Finish())
    made = create(front)
    assert HEADER not in made.headers
    assert HEADER not in get(front, f"/v1/responses/{made.json()['id']}").headers
    assert not is_marked(front, made.json()["id"])


def test_an_unstored_response_is_marked_too(front: Server, stub: ModelStub) -> None:
    stub.play(*UNCOUNTED)
    made = create(front, store=False)
    assert made.headers[HEADER] == "estimated"
    assert is_marked(front, made.json()["id"])


def test_every_surface_has_the_same_numbers(front: Server, stub: ModelStub) -> None:
    for _ in range(5):
        stub.play(*UNCOUNTED)
    with streaming(front, input="hi", **NO_TOOLS) as (_, received):
        streamed = events(list(received))[-1]["response"]["usage"]
    chat = post_chat(front, [user("hi")], **NO_TOOLS)
    chunks = stream_completion(front, [user("hi")], stream_options={"include_usage": True}, **NO_TOOLS)
    run = ended_run(front, start_run(front, {"input": "hi", **NO_TOOLS}))
    session = create_session(front)["id"]
    reply = send_message(front, session, **NO_TOOLS)
    assert chat.headers[HEADER] == "estimated"
    assert streamed["output_tokens"] == run["usage"]["output_tokens"] == TEXT_TOKENS
    assert streamed["input_tokens"] == run["usage"]["input_tokens"] == chat.json()["usage"]["prompt_tokens"]
    assert chunks.chunks[-1]["usage"] == chat.json()["usage"]
    totals = read_session(front, session)
    assert totals["input_tokens"] == reply["usage"]["input_tokens"] > 0
    assert totals["output_tokens"] == TEXT_TOKENS


def test_a_cancelled_turn_has_the_usage_up_to_there(front: Server, stub: ModelStub) -> None:
    stub.play(Text(TEXT), Gate(threading.Event()))
    made = create(front, background=True).json()
    eventually(lambda: text(front.body(made["id"])) == TEXT)
    ended = post(front, f"/v1/responses/{made['id']}/cancel", {})
    assert (ended.json()["status"], ended.headers[HEADER]) == ("cancelled", "estimated")
    assert ended.json()["usage"]["input_tokens"] > 0
    assert ended.json()["usage"]["output_tokens"] == TEXT_TOKENS
    check_log(front, made["id"])


def test_a_failed_turn_has_the_usage_up_to_there(front: Server, stub: ModelStub) -> None:
    stub.play(Text(TEXT), Raw(sse({"error": {"message": "It broke."}})))
    made = create(front)
    assert (made.json()["status"], made.headers[HEADER]) == ("failed", "estimated")
    assert made.json()["usage"]["output_tokens"] == TEXT_TOKENS


def test_operators_see_what_is_estimated(front: Server, stub: ModelStub) -> None:
    stub.play(*UNCOUNTED)
    made = create(front).json()
    with front.http() as client:
        metrics = client.get("/metrics").text
    assert 'hermes_tokens_total{direction="output",source="estimate"}' in metrics
    with logged_in(front) as operator:
        page = operator.page(f"/admin/responses_app/response/{made['id'].replace('_', '_5F')}/change/")
        dashboard = operator.page("/dashboard/past")
    assert f"{TEXT_TOKENS} out (estimated)" in page
    assert "estimated</small>" in dashboard


def test_a_turn_that_a_crash_cut_short_counts_both_attempts(make_server: Callable[..., Server]) -> None:
    with ModelStub() as stub:
        server = make_server(**env_of(stub))
        stub.play(Text(TEXT), Gate(threading.Event()))
        stub.play(Text("and the rest"), Finish())
        made = create(server, background=True).json()
        eventually(lambda: text(server.body(made["id"])) == TEXT)
        server.kill(signal.SIGKILL)
        server.start()
        ended = server.ended(made["id"])
        assert ended["status"] == "completed"
        assert ended["usage"]["output_tokens"] == TEXT_TOKENS + 7  # the second answer was counted
        assert ended["usage"]["input_tokens"] > 11
        assert is_marked(server, made["id"])


def test_a_turn_that_no_process_goes_on_with_has_the_usage_up_to_there(make_server: Callable[..., Server]) -> None:
    with ModelStub() as stub:
        server = make_server(**env_of(stub), HERMES_RECOVERY="incomplete")
        stub.play(Text(TEXT), Gate(threading.Event()))
        made = create(server, background=True).json()
        eventually(lambda: text(server.body(made["id"])) == TEXT)
        server.kill(signal.SIGKILL)
        server.start()
        ended = server.ended(made["id"])
        assert (ended["status"], ended["usage"]["output_tokens"]) == ("incomplete", TEXT_TOKENS)
        assert ended["usage"]["input_tokens"] > 0
        assert is_marked(server, made["id"])
