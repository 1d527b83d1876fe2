"""Hosts that are started again, that share a folder, or that run while their files are to be moved."""

from pathlib import Path

from tests.support.hosts import READ, WRITE, Hosts, outputs, run
from tests.support.server import Server, created_id, eventually, script, streaming
from tests.support.stored_rows import stored_rows

SHARED = {"HERMES_WORKSPACES": "shared"}


def test_turns_wait_for_a_host_that_is_started_again(hosts: Hosts) -> None:
    first, second = hosts.start(), hosts.start()
    run(first, WRITE)
    first.kill(15)
    response_id = run(second, READ, background=True)
    first.start()
    assert second.ended(response_id)["status"] == "completed"
    assert "kept" in outputs(second, response_id)[0][1]


def test_a_client_waits_without_an_error_until_another_host_may_run_the_turn(hosts: Hosts) -> None:
    """What docs/cluster.md has about a host that is gone for a while."""
    first, second = hosts.start(HERMES_WORKSPACE_SECS="13"), hosts.start(HERMES_WORKSPACE_SECS="13")
    run(first, WRITE)
    first.kill()
    in_background = run(second, READ, background=True)
    eventually(lambda: waits(second, in_background))
    second.openai().responses.cancel(in_background)
    assert second.ended(in_background)["status"] == "cancelled"
    with streaming(second, model="hermes-agent", input=script(READ, {"say": "explained"})) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: waits(second, response_id))
        assert second.body(response_id)["status"] == "in_progress"
        frames = list(received)
    assert b": keepalive\n\n" in frames
    assert frames[-1] == b"data: [DONE]\n\n"
    [(status, output)] = outputs(second, response_id)
    assert (status, "are on the host" in output) == ("failed", True)


def waits(server: Server, response_id: str) -> bool:
    """No process has its lease, and it has not ended."""
    return bool(stored_rows(server, "response", "id", id=response_id, lease_owner="", finished_at=None))


def test_a_shared_folder_serves_every_host_and_another_folder_is_an_error(hosts: Hosts, tmp_path: Path) -> None:
    first, second, third = hosts.start(**SHARED), hosts.start(**SHARED), hosts.start(**SHARED)
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


def test_files_that_are_in_use_are_not_adopted(hosts: Hosts) -> None:
    first, second = hosts.start(), hosts.start()
    run(first, WRITE)
    [(name,)] = stored_rows(first, "workspacehome", "host")
    refused = second.managed("adopt_workspaces", name)
    assert (refused.returncode, b"stop them first" in refused.stderr) == (1, True)
