"""SQLite that is locked, or has no room, or fails at any commit: nothing seen is lost, and no restart is needed."""

import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.checker import History, check_all
from tests.support.disturbed_writes import ask_until_stored, disturb_every_write, read_beside
from tests.support.migrated_database import migrated_home
from tests.support.server import Server, copy_home, eventually, script
from tests.support.shutdowns import EXIT_SECS, stop_with_signal

BUSY_SECS = 8  # SQLite waits this long by itself, and no request fails; 20 s without this test
PROMPT_SECS = 4  # after one such timeout, other requests fail at once
TMPFS_BYTES = 4_000_000
SLOW = "write 60 words at 30 words per second"


@pytest.fixture
def home(templates: Path, tmp_path: Path) -> Path:
    return copy_home(migrated_home(templates), tmp_path / "home")


@contextmanager
def started(home: Path, **env: str) -> Iterator[Server]:
    server = Server(home, **env).start()
    try:
        yield server
    finally:
        server.kill()


def test_a_lock_held_by_another_program(home: Path) -> None:
    history = History()
    with started(home, TEST_SQLITE_BUSY_SECS=str(BUSY_SECS)) as server:
        for secs in (1, 3, 12):
            _hold_lock(server, history, secs)
            ask_until_stored(server, history, f"after {secs} s of a lock")
        assert check_all(server, history) == 8  # three streams, two that waited, three afterwards
        assert "Traceback" not in server.log


def _hold_lock(server: Server, history: History, secs: int) -> None:
    """One client reads and one asks while the database is locked for so long."""
    client = history.client()
    reading = read_beside(server, client, SLOW)
    eventually(lambda: len(client.frames) > 6)
    statuses: list[int] = []
    with closing(sqlite3.connect(server.home / "hermes.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        freed_at = time.monotonic() + secs
        asking = threading.Thread(target=_ask_once, args=(server, history, statuses))
        asking.start()
        asking.join(max(0.0, freed_at - time.monotonic()))
        assert server.body(client.response_id or "")["status"] == "in_progress"  # reading needs no lock
        if statuses == [503]:
            _check_refused_at_once(server, history)
        time.sleep(max(0.0, freed_at - time.monotonic()))  # the lock's length is what this test varies
    asking.join(30)
    assert statuses == [200 if secs < BUSY_SECS else 503]
    reading.join(30)
    assert client.cut is None


def test_a_lock_does_not_hold_up_a_shutdown(home: Path) -> None:
    history = History()
    with started(home) as server:
        client = history.client()
        reading = read_beside(server, client, SLOW)
        eventually(lambda: len(client.frames) > 6)
        with closing(sqlite3.connect(home / "hermes.sqlite3", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert stop_with_signal(server) < 1 + EXIT_SECS
        reading.join(10)
        assert client.cut is not None
        server.start()
        assert check_all(server, history) == 1


def _ask_once(server: Server, history: History, statuses: list[int]) -> None:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "hello"}, timeout=60)
    statuses.append(answer.status_code)
    if answer.status_code == 200:
        history.note(answer.json()["id"])
    else:
        assert answer.json()["error"]["code"] == "storage_unavailable"
        assert int(answer.headers["retry-after"]) > 0


def _check_refused_at_once(server: Server, history: History) -> None:
    for _ in range(2):
        began, statuses = time.monotonic(), list[int]()
        _ask_once(server, history, statuses)
        assert statuses == [503]
        assert time.monotonic() - began < PROMPT_SECS


@contextmanager
def full_tmpfs(server: Server, folder: Path) -> Iterator[None]:
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    yield
    filler.unlink()


@contextmanager
def no_larger_file(server: Server, folder: Path) -> Iterator[None]:
    """Every write fails, at whatever place in whatever file."""
    assert server.process is not None
    pid = server.process.pid
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


@pytest.fixture
def tmpfs() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hermes-tmpfs-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        folder.rmdir()
        pytest.skip("a small file system can only be mounted by root, where mounting is allowed")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
    folder.rmdir()


def test_a_full_disk(home: Path, tmpfs: Path) -> None:
    _run_out_of_room(home, tmpfs, full_tmpfs)


def test_a_file_that_may_not_grow(home: Path) -> None:
    _run_out_of_room(home, home, no_larger_file)


def _run_out_of_room(home: Path, folder: Path, no_room: Callable[[Server, Path], AbstractContextManager[None]]) -> None:
    history = History()
    if folder != home:
        shutil.move(home / "hermes.sqlite3", folder)
    with started(home, DATABASE_URL=f"sqlite:///{folder / 'hermes.sqlite3'}") as server:
        client = history.client()
        asked = script({"say": "before "}, {"gate": "go"}, *[{"say": f"{'x' * 2000} "}] * 20)
        reading = read_beside(server, client, asked)
        eventually(lambda: any(b"before " in frame for frame in client.frames))
        with no_room(server, folder):
            server.open_gate("go")
            _until_refused(server, history)
            seen = len(client.events)
            assert server.body(client.response_id or "")["status"] == "in_progress"
        reading.join(30)
        assert client.cut is None
        assert len(client.events) > seen
        assert client.frames[-1] == b"data: [DONE]\n\n"
        ask_until_stored(server, history, "there is room again")
        check_all(server, history)
        with closing(sqlite3.connect(folder / "hermes.sqlite3")) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _until_refused(server: Server, history: History) -> None:
    """The last free pages may still take a few."""

    def refused() -> bool:
        with server.http() as client:
            answer = client.post("/v1/responses", json={"input": "is there room?", "background": True})
        if answer.status_code == 200:
            history.note(answer.json()["id"])
            return False
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "storage_unavailable"), answer.text
        return bool(answer.headers["retry-after"])

    eventually(refused, 30, "the refusal")


def test_every_write_of_a_run_may_fail(home: Path) -> None:
    history = History()
    order_path = home / "fail_write"
    with started(home, TEST_SQLITE_ENGINE="tests.support.failing_sqlite") as server:

        def disturb(nth: int) -> bool:
            order_path.write_text(str(nth))
            ask_until_stored(server, history, f"failed {nth}")
            is_left = order_path.exists()
            order_path.unlink(missing_ok=True)
            return not is_left

        disturb_every_write(disturb)
        check_all(server, history)
