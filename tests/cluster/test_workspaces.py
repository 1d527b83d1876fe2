"""The files of an owner: on the host that has them, or reported as out of reach."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.hosts import READ, WRITE, Hosts, outputs, owner_folder, run, runs_on
from tests.support.server import copy_home, created_id, eventually, script, streaming, text
from tests.support.stored_rows import count_rows, stored_rows


def test_turns_run_on_the_host_that_has_the_files_of_their_owner_unless_they_are_not_stored(hosts: Hosts) -> None:
    first, second = hosts.start(), hosts.start()
    run(first, {"say": "no file"})
    assert count_rows(first, "workspacehome") == 0
    run(first, WRITE)
    [(status, output)] = outputs(second, run(second, READ))
    assert (status, "kept" in output) == ("completed", True)
    assert runs_on(second, first)
    asked = script(READ, {"say": "explained"})
    made = second.openai().responses.create(model="hermes-agent", input=asked, store=False)
    assert "explained" in made.output_text
    assert "the files of this workspace are on the host" in json.dumps(made.model_dump(mode="json")["output"])


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


def test_a_turn_that_finds_its_files_elsewhere_goes_on_there(hosts: Hosts) -> None:
    first, second = hosts.start(), hosts.start()
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


def test_a_tool_whose_files_are_on_a_lost_host_fails_with_the_reason_until_they_are_adopted(hosts: Hosts) -> None:
    first, second = hosts.start(HERMES_WORKSPACE_SECS="1"), hosts.start(HERMES_WORKSPACE_SECS="1")
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
    [(name,)] = stored_rows(second, "workspacehome", "host")
    refused = second.managed("adopt_workspaces", name)
    assert (refused.returncode, b"No folder of these owners" in refused.stderr) == (1, True)
    owner = owner_folder(second)
    copy_home(first.home / "workspaces" / owner, second.home / "workspaces" / owner)
    assert "The files of 1 owners" in second.manage("adopt_workspaces", name)
    assert "kept" in outputs(second, run(second, READ))[0][1]
