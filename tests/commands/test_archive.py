"""Export and import: the round trip equals, and what was tampered with is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.checker import check_every_log
from tests.support.server import Server, script

TABLES = {
    "response": "SELECT id, turn, previous_id, conversation_id, kind, status, model, request, ignored, output, usage, "
    "error, attempt, context_hash, last_position, last_sequence, is_stored, created_at, finished_at, deleted_at "
    "FROM responses_app_response ORDER BY id",
    "input": "SELECT response_id, position, item FROM responses_app_inputitem ORDER BY response_id, position",
    "tools": "SELECT response_id, call_id, name, arguments, output, status, started_at, finished_at "
    "FROM responses_app_toolevent ORDER BY response_id, call_id",
    "sessions": "SELECT public_id, title, source, turn_count, input_tokens, output_tokens, created_at "
    "FROM responses_app_session ORDER BY public_id",
    "conversations": "SELECT id, name, metadata, created_at FROM responses_app_conversation ORDER BY id",
    "items": "SELECT conversation_id, position, item_id, response_id, item FROM responses_app_conversationitem "
    "ORDER BY conversation_id, position",
}


def stored(server: Server) -> dict[str, list[tuple[Any, ...]]]:
    def plain(value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) and value[:1] in ("{", "[") else value

    return {name: [tuple(map(plain, row)) for row in server.query(sql)] for name, sql in TABLES.items()}


def fill(server: Server) -> dict[str, str]:
    """A bit of everything that can be stored."""
    client = server.openai()
    made = {"plain": client.responses.create(input="Grüße ✓").id}
    made["next"] = client.responses.create(input="and more", previous_response_id=made["plain"]).id
    tool = script({"think": "hm"}, {"call": "effect", "arguments": {"text": "x"}}, {"say": "done"})
    made["tool"] = client.responses.create(input=tool).id
    made["failed"] = client.responses.create(input=script({"say": "half "}, {"fail": "out"})).id
    made["unstored"] = client.responses.create(input="forget me", store=False).id
    made["deleted"] = client.responses.create(input="erase me").id
    client.responses.create(input="after it", previous_response_id=made["deleted"])
    client.responses.delete(made["deleted"])
    client.responses.create(input="in a conversation", conversation="kept by name")
    with server.http() as http:
        own = [{"type": "message", "role": "user", "content": "its own"}]
        http.post("/v1/conversations", json={"items": own, "metadata": {"a": "b"}}).raise_for_status()
    return made


# Version 1 of the format has these columns of a response. Archives of earlier versions are imported by them;
# those lack is_usage_estimated.
RESPONSE_COLUMNS = """
    accessed_at approvals attempt cancel_requested_at cancel_requested_by client_tools context_hash crashes
    created_at deleted_at error finished_at first_output_ms id ignored incomplete_reason input_tokens is_background
    is_history_resent is_history_spoken is_stored is_usage_estimated kind last_position last_sequence message_count
    model on_disconnect output output_tokens quirks reasoning_form request requested_by session_key spoken_hash
    started_at status tool_calls tool_items total_ms turn usage waits_for_turn
"""


def test_a_record_has_the_columns_of_its_format(server: Server, tmp_path: Path) -> None:
    response_id = server.openai().responses.create(input="columns").id
    file = tmp_path / "archive.jsonl"
    server.manage("export_responses", response_id, "--output", str(file))
    record = json.loads(file.read_text().splitlines()[0])
    assert sorted(record["response"]) == RESPONSE_COLUMNS.split()


def test_a_round_trip_equals_and_importing_twice_changes_nothing(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    source, target = make_server(), make_server()
    made = fill(source)
    file = tmp_path / "archive.jsonl"
    done = source.managed("export_responses", "--output", str(file))
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o077 == 0
    streams = {name: source.replay(made[name]) for name in ("plain", "next", "tool", "failed")}
    rehearsal = target.managed("import_responses", str(file), "--dry-run")
    assert rehearsal.returncode == 0, rehearsal.stderr
    assert not stored(target)["response"]
    for count in ("10 added, 0 already here", "0 added, 10 already here"):
        done = target.managed("import_responses", str(file))
        assert done.returncode == 0, done.stderr
        assert count in done.stdout.decode()
    assert stored(target) == stored(source)
    assert {name: target.replay(made[name]) for name in streams} == streams
    assert check_every_log(target) == 6
    followed = target.openai().responses.create(input="go on", previous_response_id=made["next"])
    assert "Grüße ✓" in target.model_calls("go on")[0]["texts"]
    named = target.openai().responses.create(input="still here", conversation="kept by name")
    assert "in a conversation" in target.model_calls("still here")[0]["texts"]
    assert followed.status == named.status == "completed"


def test_what_was_changed_is_refused_and_the_rest_is_taken(make_server: Callable[..., Server]) -> None:
    server, target = make_server(), make_server()
    fill(server)
    lines = [json.loads(line) for line in server.managed("export_responses").stdout.splitlines()]
    plain, follower = lines[0], lines[1]
    plain["response"]["output"][0]["content"][0]["text"] = "something else"
    bad = [*lines, [], {"record": "response", "format": 1}]
    data = b"\n".join(json.dumps(line).encode() for line in bad) + b"\nnot json\n"
    done = target.managed("import_responses", "-", stdin=data)
    reported = done.stderr.decode()
    assert done.returncode == 1
    assert f"Line 1 ({plain['response']['id']}): its events do not add up to its output" in reported
    assert f"Line 2 ({follower['response']['id']}): it continues" in reported
    assert "is not JSON" in reported
    assert "5 of 13 records were refused" in reported
    assert "8 added" in done.stdout.decode()
    missing = {**lines[2], "events": lines[2]["events"][:3] + lines[2]["events"][4:]}
    missing["response"]["id"] = "resp_" + "0" * 32
    refused = target.managed("import_responses", "-", stdin=json.dumps(missing).encode())
    assert "not numbered" in refused.stderr.decode()
    missing["response"]["id"] = "resp_a/b"
    refused = target.managed("import_responses", "-", stdin=json.dumps(missing).encode())
    assert "no address could lead to it" in refused.stderr.decode()


def test_exports_can_be_narrowed_and_say_what_they_leave_out(server: Server) -> None:
    client = server.openai()
    ok = client.responses.create(input="narrowed").id
    failed = client.responses.create(input=script({"fail": "=1+1"})).id
    background = client.responses.create(input=script({"gate": "export-gate"}), background=True).id
    done = server.managed("export_responses", ok, failed, background, "--status", "failed")
    assert [json.loads(line)["response"]["id"] for line in done.stdout.splitlines()] == [failed]
    done = server.managed("export_responses", ok, background)
    assert "1 responses still run" in done.stderr.decode()
    assert server.managed("export_responses", ok, "--until", "2020-01-01").stdout == b""
    table = server.managed("export_responses", failed, "--format", "csv").stdout.decode()
    assert table.startswith("id,owner,session")
    assert ",'=1+1," in table
    server.open_gate("export-gate")
    server.ended(background)


@pytest.mark.parametrize(
    ("args", "remedy"),
    [
        (["export_responses", "resp_none"], "There is no response resp_none"),
        (["export_responses", "--since", "yesterday"], "such as 2031-05-17"),
        (["export_responses", "--output", "/nowhere/file"], "Cannot write /nowhere/file"),
        (["import_responses", "/nowhere/file"], "Cannot read /nowhere/file"),
        (["replay_response", "resp_none"], "There is no response 'resp_none'"),
    ],
)
def test_mistakes_are_reported_with_an_exit_code(server: Server, args: list[str], remedy: str) -> None:
    done = server.managed(*args)
    assert done.returncode == 1
    assert remedy in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
