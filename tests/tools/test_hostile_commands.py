"""The terminal's sandbox under attack: each probe is a call of the tool, and the server answers after it."""

import errno
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_app.tools.support import cgroups
from gateway_app.tools.support.limits import counts_processes
from gateway_app.tools.support.sandbox import bubblewrap
from tests.support import hostile_commands as hostile
from tests.support.migrated_database import Database
from tests.support.server import Server, eventually, script

pytestmark = [
    pytest.mark.any_database,
    pytest.mark.skipif(bubblewrap() is None, reason="bubblewrap does not work: apt-get install bubblewrap"),
]
needs_group = pytest.mark.skipif(cgroups.usable_parents() is None, reason="no control group can be made here")
needs_count = pytest.mark.skipif(
    cgroups.usable_parents() is None and not counts_processes(), reason="root's processes can't be counted here"
)
needs_filter = pytest.mark.skipif(hostile.MACHINE is None, reason="there is no filter for this machine")
SECRET = "sk-hostile-probe"
ABSTRACT = f"hermes-probe-{os.getpid()}"
LIMITS = {
    "HERMES_TERMINAL_MEMORY_MB": "256",
    "HERMES_TERMINAL_PROCESSES": "64",
    "HERMES_TERMINAL_FILE_MB": "16",
    "HERMES_TERMINAL_TMP_MB": "32",
    "HERMES_TERMINAL_CPU_SECS": "1",
    "HERMES_TERMINAL_OPEN_FILES": "256",
}
TOGETHER = 12  # calls in one turn
END_SECS = 20


def outputs(server: Server, *commands: str, timeout: int = 30) -> list[str]:
    """What the commands print, each run by the model as a call of the terminal."""
    calls = [{"call": "terminal", "arguments": {"command": command, "timeout": timeout}} for command in commands]
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": script(*calls)}, timeout=120)
    items: list[dict[str, Any]] = answer.json()["output"]
    found = {item["call_id"]: item["output"] for item in items if item["type"] == "function_call_output"}
    return [found[item["call_id"]] for item in items if item["type"] == "function_call"]


def assert_answers(server: Server) -> None:
    with server.http() as client:
        assert client.get("/v1/models").status_code == 200


@pytest.fixture(scope="module")
def target(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("target") / "h"
    server = database.server(home, Server, HERMES_API_KEY=SECRET, **LIMITS).start()
    (home / "config.yaml").write_text("{}")
    (home / "workspaces" / "999").mkdir(parents=True)
    outputs(server, "export SAVED=1")
    yield server
    server.kill()


@pytest.fixture(scope="module")
def listener() -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{ABSTRACT}")
        listening.listen()
        yield


@pytest.fixture(scope="module")
def attempts(target: Server, listener: None) -> dict[str, str]:
    assert target.process is not None
    known = {
        "home": target.home,
        "port": target.port,
        "pid": target.process.pid,
        "secret": SECRET,
        "abstract": ABSTRACT,
        "ptrace": 0 if hostile.MACHINE is None else hostile.MACHINE.denied["ptrace"],
    }
    found: dict[str, str] = {}
    every = list(hostile.ATTEMPTS)
    for first in range(0, len(every), TOGETHER):
        names = every[first : first + TOGETHER]
        commands = [hostile.attempt(hostile.ATTEMPTS[name].format(**known)) for name in names]
        found |= dict(zip(names, outputs(target, *commands), strict=True))
    return found


@pytest.mark.parametrize("name", hostile.ATTEMPTS)
def test_an_attempt_fails(attempts: dict[str, str], target: Server, name: str) -> None:
    assert attempts[name] == "HELD\n[exit code 0]"
    assert_answers(target)


@pytest.mark.parametrize("path", ["{home}/x", "{home}/api_key", "$HOME/../x", "{home}/workspaces/999/x"])
def test_what_is_written_beside_the_workspace_is_not_on_the_disk(target: Server, path: str) -> None:
    before = target.key
    outputs(target, f"mkdir -p {target.home}/workspaces/999; echo y > {path.format(home=target.home)}")
    assert target.key == before
    assert [found for found in target.home.rglob("x") if found.is_file()] == []
    assert_answers(target)


@pytest.fixture(scope="module")
def refusals(target: Server) -> dict[str, int]:
    [output] = outputs(target, hostile.system_calls())
    lines = [line.split() for line in output.splitlines() if "[" not in line]
    return {name: int(error) for name, error in lines}


@needs_filter
def test_the_filter_refuses_every_call_of_its_list(refusals: dict[str, int], target: Server) -> None:
    assert hostile.MACHINE is not None
    assert {refusals.pop(name) for name in hostile.MACHINE.hidden} == {errno.ENOSYS}
    assert {name: error for name, error in refusals.items() if error != errno.EPERM} == {}
    assert set(hostile.MACHINE.denied) < set(refusals)
    assert sum(name.startswith("clone-") for name in refusals) == 7
    assert_answers(target)


MEMORY = "my $held = q(x) x ({mb} * 1048576); print length($held), qq(\\n)"
# The children hold their memory until the time is up, or until one was killed for it.
TOTAL_MEMORY = "for n in 1 2 3 4; do perl -e '{hold}; sleep 20' & done; wait -n"
# Every child waits on a pipe that closes with the parent; at most 2,000.
FORKS = (
    "pipe(R, W); my $made = 0; for (1 .. 2000) { my $pid = fork(); last unless defined $pid; "
    'if (!$pid) { close W; sysread(R, my $b, 1); exit } $made++ } print "$made\\n"'
)
THREADS = """
import os, threading
made = 0
try:
    while made < 500:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        made += 1
except RuntimeError:
    pass
print(made, flush=True)
os._exit(0)
"""
FILES = 'while (@held < 5000 && open(my $f, "<", "/dev/null")) { push @held, $f } print @held + 0, "\\n"'


def test_a_process_gets_no_more_memory_than_its_limit(target: Server) -> None:
    fitting, bomb = outputs(target, *(f"perl -e '{MEMORY.format(mb=mb)}'" for mb in (100, 1000)))
    assert fitting == f"{100 * 1048576}\n[exit code 0]"
    assert str(1000 * 1048576) not in bomb
    assert "[exit code 0]" not in bomb
    assert_answers(target)


@needs_group
def test_all_processes_together_get_no_more_memory_than_the_limit(target: Server) -> None:
    hold = "$| = 1; " + MEMORY.format(mb=100)
    [output] = outputs(target, TOTAL_MEMORY.format(hold=hold), timeout=3)
    assert output.count("104857600\n") < 3
    assert_answers(target)


@needs_count
def test_a_fork_bomb_ends_at_the_limit(target: Server) -> None:
    [output] = outputs(target, f"perl -e '{FORKS}'")
    assert 1 <= int(output.split()[0]) < 64
    assert_answers(target)


@needs_count
def test_threads_count_as_processes(target: Server) -> None:
    [output] = outputs(target, f"python3 -c '{THREADS}' 2>/dev/null; true")
    assert output == "[exit code 0]" or 1 <= int(output.split()[0]) < 64
    assert_answers(target)


@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
def test_a_memory_file_system_is_full_at_its_size(target: Server, folder: str) -> None:
    write = f"for n in 1 2 3 4 5 6 7 8 9 10; do head -c 12M /dev/zero > {folder}/$n || break; done 2>/dev/null"
    [output] = outputs(target, f"{write}; du -sm {folder} | cut -f1")
    assert 12 <= int(output.split()[0]) <= 64
    assert_answers(target)


@pytest.mark.parametrize("folder", ["$HOME", "/tmp"])
def test_a_file_grows_to_its_limit(target: Server, folder: str) -> None:
    [output] = outputs(target, f"(head -c 100M /dev/zero > {folder}/big); stat -c %s {folder}/big; rm {folder}/big")
    assert f"{16 * 1048576}\n" in output
    assert_answers(target)


def test_a_sparse_file_is_no_way_around(target: Server) -> None:
    [output] = outputs(target, "(truncate -s 1G sparse; fallocate -l 1G full); cat sparse full 2>/dev/null | wc -c")
    assert "0\n[exit code 0]" in output
    assert_answers(target)


def test_a_busy_process_ends_with_its_processor_time(target: Server) -> None:
    [output] = outputs(target, "(while :; do :; done); echo after $?")
    assert "after 152" in output or "after 137" in output
    assert_answers(target)


def test_a_process_runs_out_of_files_before_the_server_does(target: Server) -> None:
    [output] = outputs(target, f"perl -e '{FILES}'")
    assert 200 < int(output.split()[0]) < 256
    assert_answers(target)


def test_a_signal_to_everything_hits_the_sandbox_alone(target: Server) -> None:
    [output] = outputs(target, "kill -9 -1; echo still here")
    assert output.endswith("[exit code 0]") or output.endswith("[exit code 137]")
    assert_answers(target)


SURVIVORS = {
    "background": "flock lock sleep 300 &",
    "nohup": "nohup flock lock sleep 300 >/dev/null 2>&1 &",
    "session of its own": "setsid flock lock sleep 300 &",
    "double fork": "( ( setsid flock lock sleep 300 & ) & )",
    "disowned": "flock lock sleep 300 & disown -a",
    "deaf": "( trap '' TERM HUP INT QUIT; exec setsid flock lock sleep 300 ) &",
}


def workspace(server: Server) -> Path:
    [found] = list(server.home.glob("workspaces/*/*/default"))
    return found


def is_free(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


TAKEN = "while flock -n lock true; do sleep 0.01; done"


@pytest.mark.parametrize("name", SURVIVORS)
def test_nothing_survives_the_call(target: Server, name: str) -> None:
    [output] = outputs(target, f"touch lock; {SURVIVORS[name]}\n{TAKEN}; echo taken")
    assert output == "taken\n[exit code 0]"
    eventually(lambda: is_free(workspace(target) / "lock"), END_SECS, "the end of the survivor")
    assert_answers(target)


@pytest.fixture
def started(make_server: Callable[..., Server]) -> tuple[Server, str]:
    """A turn in the midst of a command whose processes try to stay."""
    server = make_server(**LIMITS)
    command = ""
    for number, way in enumerate(SURVIVORS.values()):
        command += f"touch lock{number}\n{way}\n{TAKEN}\n".replace(" lock ", f" lock{number} ")
    command += "touch started; trap '' TERM; while :; do sleep 1; done"
    call = {"call": "terminal", "arguments": {"command": command, "timeout": 300}}
    asked = {"input": script(call), "background": True}
    with server.http() as client:
        response_id: str = client.post("/v1/responses", json=asked).json()["id"]
    eventually(lambda: list(server.home.glob("workspaces/*/*/default/started")), END_SECS, "the command's start")
    return server, response_id


def test_nothing_survives_a_kill_of_the_server(started: tuple[Server, str]) -> None:
    server, _ = started
    locks = list(workspace(server).glob("lock*"))
    assert not any(is_free(lock) for lock in locks)
    server.kill()
    eventually(lambda: all(is_free(lock) for lock in locks), END_SECS, "the end of every process")


def test_nothing_survives_a_cancel(started: tuple[Server, str]) -> None:
    server, response_id = started
    locks = list(workspace(server).glob("lock*"))
    assert not any(is_free(lock) for lock in locks)
    with server.http() as client:
        client.post(f"/v1/responses/{response_id}/cancel")
    eventually(lambda: all(is_free(lock) for lock in locks), END_SECS, "the end of every process")
    assert_answers(server)
