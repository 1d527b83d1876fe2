"""The files of an owner: on the host that has them, in a shared folder, or reported as unreachable."""

import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import Cluster
from tests.support.migrated_database import Database
from tests.support.people import create_key
from tests.support.server import Server, copy_home, created_id, eventually, script, server_beside, streaming, text
from tests.support.stored_rows import count_rows, stored_rows, tool_calls

LEASES = {"HERMES_LEASE_SECS": "2", "HERMES_SWEEP_SECS": "0.1"}
WRITE = {"call": "write_file", "arguments": {"path": "note.txt", "content": "kept"}}
READ = {"call": "read_file", "arguments": {"path": "note.txt"}}
NUMBERS = count(1)
SHARED = {"HERMES_WORKSPACES": "shared"}


@pytest.fixture
def host(database: Database, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Processes with homes of their own on one database, as on several hosts."""
    started: list[Server] = []

    def start(**env: str) -> Server:
        home = tmp_path / f"home{len(started)}"
        given = {**LEASES, **env}
        if not started:
            server = database.server(home, Server, **given)
        else:
            server = server_beside(started[0], home, Server, **given)
            for name in ("api_key", "secret_key"):
                (home / name).write_text((started[0].home / name).read_text())
        started.append(server)
        return server.start()

    yield start
    for server in started:
        server.kill()


def run(server: Server, *steps: dict[str, Any], background: bool = False) -> str:
    asked = script(*steps)
    made = server.openai().responses.create(model="hermes-agent", input=asked, background=background)
    return made.id


def outputs(server: Server, response_id: str) -> list[tuple[str, str]]:
    return [(status, output) for _, status, output in tool_calls(server, response_id)]


def runs_on(server: Server, other: Server) -> bool:
    """Does the other host run a turn that this one has admitted?"""
    mark = f"turn {next(NUMBERS)}"
    run(server, {"say": mark})
    return bool(other.model_calls(mark))


def test_turns_run_on_the_host_that_has_the_files_of_their_owner(host: Callable[..., Server]) -> None:
    first, second = host(), host()
    run(first, WRITE)
    [(status, output)] = outputs(second, run(second, READ))
    assert (status, "kept" in output) == ("completed", True)
    assert runs_on(second, first)


def test_a_worker_passes_turns_on_to_one_that_has_the_files(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    """Without sweeps: what does not come from the queue does not run."""
    cluster = make_cluster(HERMES_SWEEP_SECS="60", HERMES_LEASE_SECS="600")
    other_home = copy_home(cluster.home, tmp_path / "other")
    cluster.worker()
    cluster.worker(HERMES_HOME=str(other_home))
    web = cluster.web()
    run(web, WRITE)
    for _ in range(6):
        response_id = run(web, READ)
        assert "kept" in outputs(web, response_id)[0][1]
        assert stored_rows(web, "response", "attempt", id=response_id) == [(1,)]


def test_a_turn_that_finds_its_files_elsewhere_goes_on_there(host: Callable[..., Server]) -> None:
    first, second = host(), host()
    asked = script({"say": "before "}, {"gate": "go"}, READ, {"say": "after"})
    with streaming(second, model="hermes-agent", input=asked) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(second.body(response_id)) == "before ")
        run(first, WRITE)
        for server in (first, second):
            server.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"
    body = second.ended(response_id)
    assert body["status"] == "completed"
    [(status, output)] = outputs(second, response_id)
    assert (status, "kept" in output) == ("completed", True)
    assert stored_rows(second, "response", "crashes", id=response_id) == [(0,)]
    assert first.model_calls("before ")


def test_a_tool_whose_files_are_on_a_lost_host_fails_with_the_reason(host: Callable[..., Server]) -> None:
    first, second = host(HERMES_WORKSPACE_SECS="1"), host(HERMES_WORKSPACE_SECS="1")
    run(first, WRITE)
    first.kill()
    response_id = run(second, READ, {"say": "explained"})
    [(status, output)] = outputs(second, response_id)
    assert status == "failed"
    assert "the files of this workspace are on the host" in output
    assert "its last sign of life was at" in output
    assert not (second.home / "workspaces" / owner_folder(second)).exists()
    assert "explained" in text(second.ended(response_id))
    assert "no process has the files of 1 owners" in second.manage("doctor", "--offline")


def owner_folder(server: Server) -> str:
    [(owner_id,)] = stored_rows(server, "workspacehome", "owner_id")
    return str(owner_id)


def test_turns_wait_for_a_host_that_is_started_again(host: Callable[..., Server]) -> None:
    first, second = host(), host()
    run(first, WRITE)
    first.kill(15)
    response_id = run(second, READ, background=True)
    first.start()
    assert second.ended(response_id)["status"] == "completed"
    assert "kept" in outputs(second, response_id)[0][1]


def test_an_unstored_turn_runs_where_it_was_admitted_and_its_tool_fails_with_the_reason(
    host: Callable[..., Server],
) -> None:
    first, second = host(), host()
    run(first, WRITE)
    asked = script(READ, {"say": "explained"})
    made = second.openai().responses.create(model="hermes-agent", input=asked, store=False)
    assert "explained" in made.output_text
    assert "the files of this workspace are on the host" in json.dumps(made.model_dump(mode="json")["output"])


def test_a_shared_folder_serves_every_host_and_another_folder_is_an_error(
    host: Callable[..., Server], tmp_path: Path
) -> None:
    first, second, third = host(**SHARED), host(**SHARED), host(**SHARED)
    second.kill()
    (second.home / "workspaces").rename(tmp_path / "unused")
    (second.home / "workspaces").symlink_to(first.home / "workspaces")
    second.start()
    run(first, WRITE)
    assert "kept" in outputs(second, run(second, READ))[0][1]
    [(status, output)] = outputs(third, run(third, READ))
    assert (status, "are on the host" in output) == ("failed", True)
    checked = first.managed("doctor", "--offline")
    assert checked.returncode == 1
    assert b"FAIL workspace 1 processes have another folder" in checked.stdout


def test_files_that_were_copied_are_adopted(host: Callable[..., Server]) -> None:
    first, second = host(HERMES_WORKSPACE_SECS="1"), host(HERMES_WORKSPACE_SECS="1")
    run(first, WRITE)
    [(name,)] = stored_rows(first, "workspacehome", "host")
    refused = second.managed("adopt_workspaces", name)
    assert (refused.returncode, b"stop them first" in refused.stderr) == (1, True)
    first.kill(15)
    refused = second.managed("adopt_workspaces", name)
    assert (refused.returncode, b"No folder of these owners" in refused.stderr) == (1, True)
    owner = owner_folder(second)
    copy_home(first.home / "workspaces" / owner, second.home / "workspaces" / owner)
    assert "The files of 1 owners" in second.manage("adopt_workspaces", name)
    assert "kept" in outputs(second, run(second, READ))[0][1]


def test_owners_without_files_are_not_pinned(host: Callable[..., Server]) -> None:
    first, second = host(), host()
    key = create_key(first, "without-files")
    first.openai(key).responses.create(model="hermes-agent", input=script({"say": "hello"}))
    assert count_rows(first, "workspacehome") == 0
    assert runs_on(second, second)
