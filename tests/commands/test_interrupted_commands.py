"""Commands that are stopped half way: what is done stays done, and no traceback or half a file is left."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management.base import OutputWrapper

from responses_app.management.progress import Progress
from tests.support.server import ROOT, Server, eventually


def begun(server: Server, *args: str, before: Callable[[], object] | None = None) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "manage.py", *args],
        cwd=ROOT,
        env=server.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=before or (lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)),  # none in the background
    )


def test_an_interrupted_import_reports_its_progress(server: Server) -> None:
    response_id = server.openai().responses.create(input="exported and imported").id
    record = server.managed("export_responses", response_id).stdout
    with begun(server, "import_responses", "-") as command:
        given, reported = command.stdin, command.stderr
        assert given is not None
        assert reported is not None
        os.set_blocking(reported.fileno(), False)

        def is_on_its_way() -> bool:
            given.write(record)
            given.flush()
            return b" read" in (reported.read() or b"")

        eventually(is_on_its_way, 30, "a line of progress")
        command.send_signal(signal.SIGINT)
        os.set_blocking(reported.fileno(), True)
        last_words = reported.read().decode()
    assert command.returncode == 130
    assert "Interrupted: " in last_words
    assert "Traceback" not in last_words


def _break_off() -> None:
    try:
        raise KeyboardInterrupt
    finally:
        raise RuntimeError("the connection is in the midst of its COMMIT")


def test_an_interruption_counts_whatever_else_it_breaks() -> None:
    reported = StringIO()
    with pytest.raises(KeyboardInterrupt), Progress(OutputWrapper(reported), "read"):
        _break_off()
    assert "Interrupted: 0 read" in reported.getvalue()
    with pytest.raises(RuntimeError), Progress(OutputWrapper(reported), "read"):
        raise RuntimeError("no signal interrupted it")


def test_a_reader_who_has_seen_enough_is_no_error(server: Server) -> None:
    response_id = server.openai().responses.create(input="write 20000 words").id
    with begun(server, "export_responses", response_id, response_id) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.read(10) == b'{"record":'
        command.stdout.close()
        assert b"Traceback" not in command.stderr.read()


def test_half_an_archive_is_not_left_behind(server: Server, tmp_path: Path) -> None:
    response_id = server.openai().responses.create(input="write 2000 words").id
    file = tmp_path / "archive.jsonl"
    with begun(server, "export_responses", response_id, "-o", str(file), before=_small_files) as command:
        assert command.stderr is not None
        assert "Cannot write" in command.stderr.read().decode()
    assert command.returncode == 1
    assert not file.exists()


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
