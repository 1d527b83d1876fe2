"""``/v1/runs`` as Hermes frontends use it."""

import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.checker import check_log
from tests.support.hermes_client import (
    all_run_events,
    ended_run,
    event_data,
    get,
    names,
    parsed,
    post,
    run_events,
    run_status,
    start_run,
    until_status,
)
from tests.support.people import create_key
from tests.support.scripted_requests import call, effects
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.stored_rows import stored_rows, until_merged

pytestmark = pytest.mark.any_database


def test_a_run_is_accepted_watched_and_read(server: Server) -> None:
    answer = post(server, "/v1/runs", {"input": script({"think": "hm"}, {"say": "one two three"})})
    assert answer.status_code == 202
    started = answer.json()
    assert (started["status"], started["replayed"]) == ("started", False)
    run_id = started["run_id"]
    assert len(run_id) == len("run_") + 32
    received = all_run_events(server, run_id)
    assert received[-1] == b": stream closed\n\n"
    events = event_data(received)
    assert all({"event", "run_id", "timestamp"} <= set(event) and event["run_id"] == run_id for event in events)
    assert not any(frame.startswith(b"event:") for frame in received)
    assert names(received)[0] == "reasoning.delta"
    assert {"event": "reasoning.available", "text": "hm"}.items() <= events[1].items()
    deltas = "".join(event["delta"] for event in events if event["event"] == "message.delta")
    assert deltas == "one two three" == events[-1]["output"]
    assert events[-1]["event"] == "run.completed"
    shown = run_status(server, run_id)
    assert {"object": "hermes.run", "run_id": run_id, "status": "completed"}.items() <= shown.items()
    assert (shown["output"], shown["last_event"]) == ("one two three", "run.completed")
    assert shown["usage"] == events[-1]["usage"]
    assert isinstance(shown["created_at"], float)
    assert shown["session_id"] == answer.headers["x-hermes-session-id"]
    assert "error" not in shown
    check_log(server, started["response_id"])


def test_tools_are_reported_and_internal_ones_are_not(server: Server) -> None:
    steps = (call("effect", text="shown"), call("_hidden", text="secret"), call("explode"))
    run_id = start_run(server, {"input": script(*steps)})
    received = all_run_events(server, run_id)
    tools = [event for event in event_data(received) if event["event"].startswith("tool.")]
    assert [(event["event"], event["tool"]) for event in tools if event["tool"] == "effect"] == [
        ("tool.started", "effect"),
        ("tool.completed", "effect"),
    ]
    assert next(event for event in tools if event["tool"] == "effect")["preview"] == '{"text":"shown"}'
    failed = next(event for event in tools if (event["event"], event["tool"]) == ("tool.completed", "explode"))
    assert failed["error"] is True
    assert isinstance(failed["duration"], float)
    assert b"_hidden" not in b"".join(received)


def test_any_number_of_readers_and_each_from_where_it_was_cut(server: Server) -> None:
    run_id = start_run(server, {"input": script({"say": "a b c "}, {"gate": "run-readers"}, {"say": "d e f"})})
    whole: list[list[bytes]] = [[], []]

    def read(into: list[bytes]) -> None:
        into.extend(all_run_events(server, run_id))

    readers = [threading.Thread(target=read, args=(into,)) for into in whole]
    for reader in readers:
        reader.start()
    with run_events(server, run_id) as received:  # a third, which leaves in the middle
        seen = [next(received) for _ in range(3)]
    server.open_gate("run-readers")
    for reader in readers:
        reader.join(20)
    assert whole[0] == whole[1]
    last_seen, _, _ = parsed(seen[-1])
    for sent in ({"params": {"after": last_seen}}, {"headers": {"Last-Event-ID": str(last_seen)}}):
        assert seen + all_run_events(server, run_id, **sent) == whole[0]
    for params in ({"last_seq": last_seen}, {"last_seq": last_seen, "after": 0}, {"last_seq": 0, "after": last_seen}):
        assert seen + all_run_events(server, run_id, params=params) == whole[0]
    assert all_run_events(server, run_id, params={"last_seq": 0}) == whole[0]
    ids = [parsed(frame)[0] or 0 for frame in whole[0][:-1]]
    assert [event["seq"] for event in event_data(whole[0])] == ids
    assert ids == sorted(set(ids))
    for cut in ids:
        rest = all_run_events(server, run_id, params={"after": cut})
        assert rest == whole[0][ids.index(cut) + 1 :]


def test_a_kill_in_the_middle_of_the_events_leaves_no_gap(make_server: Callable[..., Server]) -> None:
    server = make_server()
    asked = script({"say": "one two "}, call("safe_effect", text="x", gate="run-kill"), {"say": "not reached"})
    run_id = start_run(server, {"input": asked})
    seen: list[bytes] = []
    with run_events(server, run_id) as received:
        for frame in received:
            seen.append(frame)
            if b"tool.started" in frame:
                break
        server.kill()
        with pytest.raises(httpx.TransportError):
            list(received)
    server.start()
    resumed: list[bytes] = []
    reader = threading.Thread(
        target=lambda: resumed.extend(all_run_events(server, run_id, params={"after": parsed(seen[-1])[0]}))
    )
    reader.start()
    eventually(lambda: effects(server, "x") == 2, 20, "the second try of a call that may be repeated")
    server.open_gate("run-kill")
    reader.join(20)
    assert seen + resumed == all_run_events(server, run_id)
    events = event_data(seen + resumed)
    assert [event["event"] for event in events].count("tool.started") == 1
    assert [event["event"] for event in events].count("tool.completed") == 1
    assert "".join(e["delta"] for e in events if e["event"] == "message.delta") == events[-1]["output"]
    check_log(server, f"resp_{run_id[4:]}")


def test_the_times_of_events_are_the_same_live_and_later(server: Server) -> None:
    run_id = start_run(server, {"input": "write 200 words at 400 words per second"})
    live = all_run_events(server, run_id)
    until_merged(server, f"resp_{run_id[4:]}")
    assert all_run_events(server, run_id) == live
    times = [event["timestamp"] for event in event_data(live)]
    assert times == sorted(times)
    assert times[-1] - times[0] > 0.2


def test_stop(server: Server) -> None:
    run_id = start_run(server, {"input": script({"say": "kept "}, {"gate": "never"})})
    eventually(lambda: run_status(server, run_id)["output"] == "kept ")
    assert run_status(server, run_id)["status"] == "running"
    stopped = post(server, f"/v1/runs/{run_id}/stop", {})
    assert (stopped.status_code, stopped.json()) == (200, {"run_id": run_id, "status": "stopping"})
    shown = ended_run(server, run_id)
    assert (shown["status"], shown["output"], shown["last_event"]) == ("cancelled", "kept ", "run.cancelled")
    assert names(all_run_events(server, run_id))[-1] == "run.cancelled"
    again = post(server, f"/v1/runs/{run_id}/stop", {})
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")


def test_a_stop_records_the_key_that_asked_for_it(server: Server) -> None:
    run_id = start_run(server, {"input": script({"gate": "never"})})
    post(server, f"/v1/runs/{run_id}/stop", {})
    ended_run(server, run_id)
    asked = stored_rows(server, "response", "cancel_requested_by", id=f"resp_{run_id[4:]}")
    assert asked == [("key root",)]


def test_approval_through_the_run(server: Server) -> None:
    run_id = start_run(server, {"input": script(call("guarded", text="run consent"))})
    shown = until_status(server, run_id, "waiting_for_approval")
    assert (shown["approval"]["tool"], shown["last_event"]) == ("guarded", "approval.request")
    listed = get(server, "/v1/runs", status="waiting_for_approval").json()["data"]
    assert run_id in [run["run_id"] for run in listed]
    with run_events(server, run_id) as received:
        asked = parsed(next(received))[2]
        assert asked["event"] == "approval.request"
        assert asked["choices"] == ["once", "session", "always", "deny"]
        decided = post(server, f"/v1/runs/{run_id}/approval", {"choice": "approve", "request_id": asked["request_id"]})
        assert decided.json()["resolved"] == 1
        rest = list(received)
    assert names(rest)[:3] == ["approval.responded", "tool.started", "tool.completed"]
    assert event_data(rest)[0]["choice"] == "once"
    assert ended_run(server, run_id)["status"] == "completed"
    assert effects(server, "run consent") == 1


def test_a_failed_run_says_why(server: Server) -> None:
    run_id = start_run(server, {"input": script({"say": "so far"}, {"fail": "the model broke"})})
    shown = ended_run(server, run_id)
    assert (shown["status"], shown["error"], shown["output"]) == ("failed", "the model broke", "so far")
    last = event_data(all_run_events(server, run_id))[-1]
    assert (last["event"], last["error"]) == ("run.failed", "the model broke")


def test_a_run_that_a_restart_ended_is_interrupted(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_RECOVERY="incomplete")
    run_id = start_run(server, {"input": script({"say": "x "}, {"gate": "never"})})
    eventually(lambda: run_status(server, run_id)["output"] == "x ")
    server.kill()
    server.start()
    assert ended_run(server, run_id)["status"] == "interrupted"
    assert names(all_run_events(server, run_id))[-1] == "run.failed"


def test_a_limit_is_no_failure(server: Server) -> None:
    run_id = start_run(
        server, {"input": script(call("effect", text="l"), call("effect", text="l")), "max_tool_calls": 1}
    )
    shown = ended_run(server, run_id)
    assert (shown["status"], shown["incomplete_details"]) == ("completed", {"reason": "max_tool_calls"})


def test_calls_of_the_clients_tools_end_a_run(server: Server) -> None:
    tools = [{"type": "function", "name": "mine", "parameters": {"type": "object", "properties": {}}}]
    run_id = start_run(server, {"input": script(call("mine", x=1)), "tools": tools})
    [asked] = ended_run(server, run_id)["tool_calls"]
    assert asked["function"] == {"name": "mine", "arguments": '{"x":1}'}
    answer = {"type": "function_call_output", "call_id": asked["id"], "output": "42"}
    following = start_run(server, {"input": [answer], "previous_response_id": f"resp_{run_id[4:]}"})
    assert ended_run(server, following)["output"] == "The result is 42."


def test_runs_are_listed_in_pages_and_by_session(server: Server) -> None:
    made = [start_run(server, {"input": "hello", "session_id": "listed-runs"}) for _ in range(3)]
    for run_id in made:
        ended_run(server, run_id)
    first = get(server, "/v1/runs", session_id="listed-runs", limit=2).json()
    assert [run["run_id"] for run in first["data"]] == made[:0:-1]
    assert first["has_more"] is True
    second = get(server, "/v1/runs", session_id="listed-runs", limit=2, after=first["last_id"]).json()
    assert [run["run_id"] for run in second["data"]] == made[:1]
    assert get(server, "/v1/runs", status="broken").json()["error"]["param"] == "status"


def test_only_runs_are_runs_and_only_ones_own(server: Server) -> None:
    other = server.openai().responses.create(model="hermes-agent", input="no run")
    run_id = start_run(server, {"input": "mine"})
    ended_run(server, run_id)
    stranger = create_key(server, "run-stranger")
    for path in ("", "/events"):
        for key, wrong in ((None, f"run_{other.id[5:]}"), (None, "run_unknown"), (None, other.id), (stranger, run_id)):
            refused = get(server, f"/v1/runs/{wrong}{path}", key)
            assert (refused.status_code, refused.json()["error"]["code"]) == (404, "run_not_found")
    for key, wrong in ((None, f"run_{other.id[5:]}"), (stranger, run_id)):
        assert post(server, f"/v1/runs/{wrong}/stop", {}, key).status_code == 404
    assert post(server, f"/v1/runs/{run_id}/approval", {"choice": "once"}, stranger).status_code == 404
    assert get(server, "/v1/runs", stranger).json()["data"] == []
    assert text(server.body(f"resp_{run_id[4:]}"))


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({}, 400, "input"),
        ({"input": 3}, 400, "input"),
        ({"input": "x", "previous_response_id": "resp_unknown"}, 404, "previous_response_id"),
        ({"input": "x", "session_id": "a/b"}, 400, "session_id"),
        ({"input": "x", "session_id": 3}, 400, "session_id"),
        ({"input": "x", "conversation_history": "no"}, 400, "conversation_history"),
        ({"input": "x", "conversation_history": {}}, 400, "conversation_history"),
        ({"input": "x", "conversation_history": [{"role": "x", "content": "y"}]}, 400, "conversation_history[0].role"),
        ({"input": "x", "store": False}, 400, "store"),
        ({"input": "x", "model": "unknown"}, 404, "model"),
        ({"input": "x", "session_id": "s", "conversation": "c"}, 400, "session_id"),
    ],
)
def test_bad_requests_are_named(server: Server, body: dict[str, Any], status: int, param: str) -> None:
    refused = post(server, "/v1/runs", body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (status, param)


def test_a_bad_cursor_is_named(server: Server) -> None:
    run_id = start_run(server, {"input": "hi"})
    ended_run(server, run_id)
    for name in ("after", "last_seq"):
        for cursor, code in (("x", None), ("99999", "cursor_ahead_of_log")):
            refused = get(server, f"/v1/runs/{run_id}/events", **{name: cursor})
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, name)
            assert refused.json()["error"]["code"] == code
