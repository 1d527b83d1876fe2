"""Hosts that are started again, that share a folder, or that run while their files are to be moved."""

from pathlib import Path

from tests.support.hosts import READ, WRITE, Hosts, outputs, run
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
