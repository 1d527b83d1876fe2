"""What becomes of a turn that comes while another of its session runs."""

import threading
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.support.checker import check_log
from tests.support.hermes_client import (
    ended_run,
    post,
    run_status,
    start_run,
)
from tests.support.scripted_requests import call
from tests.support.server import Server, eventually, script
from tests.support.session_client import create_session, update_session
from tests.support.stored_rows import stored_rows
from tests.support.websockets import socket


def busy(server: Server, *steps: dict[str, Any], **session: Any) -> tuple[str, str]:
    """A session, and the run that keeps it busy."""
    session_id = create_session(server, **session)["id"]
    run_id = start_run(server, {"input": script({"say": "busy "}, *steps), "session_id": session_id})
    eventually(lambda: run_status(server, run_id)["output"] == "busy ")
    return session_id, run_id


def test_queue(server: Server) -> None:
    session_id, first = busy(server, {"gate": "policy-queue"})
    second = start_run(server, {"input": "next", "session_id": session_id})
    assert run_status(server, second)["status"] == "queued"
    server.open_gate("policy-queue")
    assert ended_run(server, first)["status"] == ended_run(server, second)["status"] == "completed"


def everywhere(server: Server, session_id: str, **headers: str) -> list[httpx.Response]:
    body = {"input": "not now"}
    return [
        post(server, "/v1/runs", {**body, "session_id": session_id}, **headers),
        post(server, "/v1/responses", body, X_Hermes_Session_Id=session_id, **headers),
        post(server, f"/api/sessions/{session_id}/chat", body, **headers),
        post(server, f"/api/sessions/{session_id}/chat/stream", body, **headers),
    ]


def test_reject(server: Server) -> None:
    session_id, first = busy(server, {"gate": "policy-reject"}, turn_policy="reject")
    for refused in everywhere(server, session_id):
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_busy")
        assert refused.headers["x-should-retry"] == "false"
    queued = start_run(server, {"input": "wait", "session_id": session_id}, X_Hermes_Turn_Policy="queue")
    server.open_gate("policy-reject")
    assert ended_run(server, first)["status"] == ended_run(server, queued)["status"] == "completed"
    assert stored_rows(server, "session", "turn_count", public_id=session_id) == [(2,)]
    assert ended_run(server, start_run(server, {"input": "free", "session_id": session_id}))["status"] == "completed"


def test_reject_by_header(server: Server) -> None:
    session_id, first = busy(server, {"gate": "policy-header"})
    for refused in everywhere(server, session_id, X_Hermes_Turn_Policy="reject"):
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "session_busy")
    for refused in everywhere(server, session_id, X_Hermes_Turn_Policy="maybe"):
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "X-Hermes-Turn-Policy")
    chained = post(
        server,
        "/v1/responses",
        {"input": "x", "previous_response_id": f"resp_{first[4:]}"},
        X_Hermes_Turn_Policy="reject",
    )
    assert chained.json()["error"]["code"] == "session_busy"
    with socket(server, X_Hermes_Session_Id=session_id, X_Hermes_Turn_Policy="reject") as ws:
        refused_frame = ws.ask(input="not now")
        assert (refused_frame["status"], refused_frame["error"]["code"]) == (409, "session_busy")
    with pytest.raises(InvalidStatus), socket(server, X_Hermes_Turn_Policy="maybe"):
        pass
    server.open_gate("policy-header")
    ended_run(server, first)


@pytest.mark.parametrize("steps", [({"gate": "never"},), (call("effect", gate="never"),), (call("guarded"),)])
def test_interrupt(server: Server, steps: tuple[dict[str, Any], ...]) -> None:
    """Whether it speaks, uses a tool or waits for consent: it ends, and its open calls are closed for the model."""
    session_id, first = busy(server, *steps)
    update_session(server, session_id, turn_policy="interrupt")
    waiting = start_run(server, {"input": "waits", "session_id": session_id}, X_Hermes_Turn_Policy="queue")
    word = f"instead-{first}"
    last = start_run(server, {"input": word, "session_id": session_id})
    assert ended_run(server, last)["status"] == "completed"
    assert run_status(server, first)["status"] == run_status(server, waiting)["status"] == "cancelled"
    [asked] = [call for call in server.model_calls(word) if call["event"] == "started"]
    assert "busy " in asked["texts"]
    assert "call" not in steps[0] or any("Interrupted" in reply for reply in asked["texts"])
    check_log(server, f"resp_{first[4:]}")


def test_a_turn_that_brings_its_history_is_never_refused(server: Server) -> None:
    session_id, first = busy(server, {"gate": "policy-free"}, turn_policy="reject")
    history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    free = start_run(server, {"input": "free", "conversation_history": history, "session_id": session_id})
    assert ended_run(server, free)["status"] == "completed"
    assert run_status(server, first)["status"] == "running"
    server.open_gate("policy-free")
    ended_run(server, first)


def test_of_many_at_once_one_is_taken(server: Server) -> None:
    session_id = create_session(server, turn_policy="reject")["id"]
    body = {"input": script({"gate": "policy-race"}, {"say": "x"}), "session_id": session_id}
    barrier = threading.Barrier(10)
    answers: list[httpx.Response] = []

    def ask() -> None:
        barrier.wait(10)
        answers.append(post(server, "/v1/runs", body))

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(answer.status_code for answer in answers) == [202, *[409] * 9]
    server.open_gate("policy-race")
    [taken] = [answer.json()["run_id"] for answer in answers if answer.status_code == 202]
    ended_run(server, taken)
