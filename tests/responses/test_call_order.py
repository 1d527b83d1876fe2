"""Calls that a model makes together: those that change something run in their order."""

from collections.abc import Callable

import pytest

from tests.support.checker import check_log
from tests.support.scripted_requests import call, effects, run_script, start_background
from tests.support.server import Server, created_id, events, eventually, script, streaming

pytestmark = pytest.mark.any_database


def traces(server: Server, *words: str) -> list[str]:
    lines = (server.home / "effects.txt").read_text().splitlines()
    return [line for line in lines if line in words]


def test_calls_that_only_read_run_in_parallel(server: Server) -> None:
    """Each waits for a gate that is opened only when both have begun."""
    both = script(call("look", mark="left", gate="both"), call("look", mark="right", gate="both"))
    with streaming(server, input=both) as (_, received):
        response_id = created_id(next(received))
        begun = [server.home / "looking-left", server.home / "looking-right"]
        eventually(lambda: all(file.exists() for file in begun), what="both calls to begin")
        server.open_gate("both")
        kinds = [event["item"]["type"] for event in events(list(received)) if event["type"].endswith("item.done")]
    assert kinds == ["function_call", "function_call", "function_call_output", "function_call_output", "message"]
    check_log(server, response_id)


def test_calls_that_change_something_run_one_after_the_other(server: Server) -> None:
    one_by_one = (call("effect", text="slow", gate="slow"), call("effect", text="next"), call("look"))
    response_id = start_background(server, *one_by_one)
    eventually(lambda: effects(server, "slow"), what="the first call to begin")
    assert effects(server, "next") == 0
    server.open_gate("slow")
    body = server.ended(response_id)
    assert traces(server, "slow", "next") == ["slow", "next"]
    looked = body["output"][-2]
    assert looked["type"] == "function_call_output"
    assert looked["output"].splitlines()[-2:] == ["slow", "next"]  # a call that reads sees what was done before it
    check_log(server, response_id)


def test_a_call_that_reads_is_over_before_the_next_one_changes_something(server: Server) -> None:
    response_id = start_background(server, call("look", mark="early", gate="early"), call("effect", text="later"))
    eventually((server.home / "looking-early").exists, what="the first call to begin")
    assert effects(server, "later") == 0
    server.open_gate("early")
    body = server.ended(response_id)
    assert "later" not in body["output"][2]["output"]


def test_a_command_sees_the_folder_that_the_command_before_made(server: Server) -> None:
    body = run_script(
        server,
        call("write_file", path="made/notes.txt", content="here"),
        call("read_file", path="made/notes.txt"),
    )
    assert body["output"][3]["output"] == "1|here"


def test_the_order_holds_over_a_crash(make_server: Callable[..., Server]) -> None:
    server = make_server()
    steps = (call("safe_effect", text="killed", gate="killed"), call("effect", text="behind"))
    response_id = start_background(server, *steps)
    eventually(lambda: effects(server, "killed"), what="the first call to begin")
    server.kill()
    assert effects(server, "behind") == 0
    server.start()
    eventually(lambda: effects(server, "killed") == 2, what="the first call to run again")
    assert effects(server, "behind") == 0
    server.open_gate("killed")
    server.ended(response_id)
    assert traces(server, "killed", "behind") == ["killed", "killed", "behind"]
    check_log(server, response_id)
