"""The tools that work on files: what they do, and that nothing leads them out of the workspace."""

import asyncio
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway_app.agent.tools import ToolContext
from gateway_app.tools import builtin_tools, search_files
from gateway_app.tools.support.output import MAX_RESULT_CHARS
from gateway_app.tools.support.tree import is_match
from gateway_app.tools.support.workspace import PathRefused, locate, opened_folder
from tests.support.tool_runs import text_of

TOOLS = builtin_tools("off")
Run = Callable[..., Awaitable[str]]
PATHS = {
    "read_file": {},
    "write_file": {"content": "x"},
    "patch": {"old_string": "a", "new_string": "b"},
    "list_files": {},
    "search_files": {"pattern": "."},
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("a secret")
    return tmp_path / "home" / "workspace"


@pytest.fixture
def run(workspace: Path) -> Run:
    context = ToolContext(workspace, report=print)

    async def run(name: str, **arguments: Any) -> str:
        return await asyncio.wait_for(text_of(TOOLS[name].run(arguments, context)), 30)

    return run


async def test_a_file_is_written_read_patched_listed_and_found(run: Run, workspace: Path) -> None:
    assert await run("write_file", path="src/a.py", content="one\ntwo ü\n") == "Wrote 11 bytes to src/a.py."
    assert await run("read_file", path="src/a.py") == "1|one\n2|two ü"
    assert "line 2" in await run("patch", path="src/a.py", old_string="two", new_string="2")
    assert (workspace / "src/a.py").read_text() == "one\n2 ü\n"
    assert await run("list_files") == "src/"
    assert await run("list_files", recursive=True) == "src/\nsrc/a.py (9 bytes)"
    assert await run("search_files", pattern="^[0-9]") == "src/a.py:2:2 ü\n"
    assert await run("search_files", pattern="one", path="src/a.py") == "src/a.py:1:one\n"


async def test_the_workspace_is_made_for_its_owner_alone(run: Run, workspace: Path) -> None:
    assert await run("list_files") == "[nothing there]"
    assert stat.S_IMODE(os.stat(workspace).st_mode) == 0o700


@pytest.mark.parametrize("name", PATHS)
async def test_no_path_leads_outside(name: str, run: Run, workspace: Path, tmp_path: Path) -> None:
    await run("list_files")
    (workspace / "out").symlink_to(tmp_path)
    (workspace / "link").symlink_to(tmp_path / "secret")
    (workspace / "dangling").symlink_to(tmp_path / "new")
    (workspace / "chain").symlink_to("link")
    (workspace / "sub").mkdir()
    secret = str(tmp_path / "secret")
    for path in ("../../secret", secret, "out/secret", "link", "dangling", "chain", "sub/../../..", "/etc", ".."):
        with pytest.raises(PathRefused, match="outside the workspace"):
            await run(name, path=path, **PATHS[name])
    assert (tmp_path / "secret").read_text() == "a secret"
    assert not (tmp_path / "new").exists()


async def test_absolute_paths_and_links_that_stay_inside_are_fine(run: Run, workspace: Path) -> None:
    await run("write_file", path=str(workspace / "a/b.txt"), content="inside")
    (workspace / "link").symlink_to("a")
    for path in ("link/b.txt", "a/../a/b.txt", "~/a/b.txt", str(workspace / "link/b.txt")):
        assert await run("read_file", path=path) == "1|inside"
    await run("write_file", path="link/b.txt", content="changed")
    assert (workspace / "link").is_symlink()
    assert (workspace / "a/b.txt").read_text() == "changed"


async def test_a_link_put_there_after_the_check_is_not_followed(run: Run, workspace: Path, tmp_path: Path) -> None:
    await run("write_file", path="a/b/c.txt", content="x")
    parts = locate(workspace, "a/b/c.txt")
    (workspace / "a").rename(workspace / "moved")
    (workspace / "a").symlink_to(tmp_path)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"), opened_folder(workspace, parts[:-1]):
        pytest.fail("it was followed")


@pytest.mark.parametrize("name", ["read_file", "write_file", "patch", "search_files"])
async def test_what_is_not_a_file_is_refused_and_blocks_nothing(
    name: str, run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run("list_files")
    os.mkfifo(workspace / "fifo")
    (workspace / "loop").symlink_to("pool")
    (workspace / "pool").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(workspace)  # the path of a socket is short
        listening.bind("socket")
    for path in ("fifo", "loop", "loop/x", "socket", "fifo/x"):
        with pytest.raises(PathRefused):
            await run(name, path=path, **PATHS[name])
    assert stat.S_ISFIFO((workspace / "fifo").stat().st_mode)
    assert "fifo (not a regular file)\nloop -> pool" in await run("list_files")
    assert await run("search_files", pattern="x") == "[nothing found]"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
async def test_a_device_is_refused(run: Run, workspace: Path) -> None:
    await run("list_files")
    os.mknod(workspace / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    for name in ("read_file", "patch", "write_file"):
        with pytest.raises(PathRefused, match="not a regular file"):
            await run(name, path="zero", **PATHS[name])


async def test_missing_files_and_folders_are_named(run: Run) -> None:
    with pytest.raises(PathRefused, match=r"^no/file: there is no such file or folder$"):
        await run("read_file", path="no/file")
    with pytest.raises(PathRefused, match="itself, a folder"):
        await run("read_file", path=".")
    with pytest.raises(PathRefused, match="is a folder"):
        await run("write_file", path="new/", content="")
    with pytest.raises(PathRefused, match="File name too long"):
        await run("write_file", path="x" * 300, content="")
    with pytest.raises(PathRefused, match="NUL"):
        await run("read_file", path="a\0b")
    with pytest.raises(ValueError, match=r"'path'.*NUL"):
        await run("search_files", pattern="x", path="a\0b")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("read_file", {}, "'path' is missing"),
        ("read_file", {"path": 3}, "'path' must be a string"),
        ("read_file", {"path": ""}, "'path' must not be empty"),
        ("read_file", {"path": "a", "limit": True}, "'limit' must be a whole number"),
        ("read_file", {"path": "a", "limit": 9999}, "'limit' must be at least 1 and at most 2000"),
        ("read_file", {"path": "a", "start": 1}, "no argument 'start'"),
        ("write_file", {"path": "a"}, "'content' is missing"),
        ("write_file", {"path": "a", "content": "\ud800"}, "'content' is not valid Unicode"),
        ("patch", {"path": "a", "old_string": "", "new_string": ""}, "'old_string' must not be empty"),
        ("patch", {"path": "a", "old_string": "a", "new_string": "a"}, "are the same"),
        ("list_files", {"recursive": "yes"}, "'recursive' must be true or false"),
        ("search_files", {"pattern": "("}, "'pattern' is not a regular expression"),
        ("search_files", {"pattern": "x" * 1001}, "'pattern' may have at most 1000"),
    ],
)
async def test_a_wrong_argument_is_named(run: Run, name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        await run(name, **arguments)


async def test_a_long_file_is_read_page_by_page(run: Run, workspace: Path) -> None:
    await run("write_file", path="long", content="".join(f"line {n}\n" for n in range(1, 5001)))
    first = await run("read_file", path="long")
    assert first.count("\n") == 2000
    assert first.endswith("2000|line 2000\n[cut: go on with read_file offset=2001; the file has 48893 bytes]")
    assert await run("read_file", path="long", offset=5000, limit=5) == "5000|line 5000"
    assert await run("read_file", path="long", offset=5001) == "[the file ends before line 5001: it has 5000 lines]"
    (workspace / "no-end").write_text("a\nb")
    assert await run("read_file", path="no-end", offset=4) == "[the file ends before line 4: it has 2 lines]"


async def test_empty_binary_foreign_and_windows_files_are_distinguished(run: Run, workspace: Path) -> None:
    await run("write_file", path="empty", content="")
    (workspace / "image").write_bytes(b"\x89PNG\0\0")
    (workspace / "latin").write_bytes("Käse\n".encode("latin-1"))
    (workspace / "dos").write_bytes(b"a\r\nb\r\n")
    assert await run("read_file", path="empty") == "[the file is empty]"
    assert "binary file of 6 bytes, which begins with 89 50" in await run("read_file", path="image")
    assert await run("read_file", path="latin") == "1|K\ufffdse"
    assert await run("read_file", path="dos") == "1|a\n2|b\n[the lines end with CRLF]"
    await run("patch", path="dos", old_string="a\nb", new_string="c\nd")
    assert (workspace / "dos").read_bytes() == b"c\r\nd\r\n"
    await run("patch", path="latin", old_string="se", new_string="fer")
    assert (workspace / "latin").read_bytes() == "Käfer\n".encode("latin-1")


async def test_100_megabytes_are_no_trouble(run: Run, workspace: Path) -> None:
    await run("list_files")
    (workspace / "one-line").write_bytes(b"x" * 100_000_000)
    with (workspace / "lines").open("wb") as file:
        for _ in range(100):
            file.write(b"123456789\n" * 100_000)
    assert await run("read_file", path="one-line") == f"1|{'x' * 2000} [line cut]"
    assert await run("read_file", path="lines", offset=10_000_000) == "10000000|123456789"
    assert len(await run("read_file", path="lines")) < MAX_RESULT_CHARS
    with pytest.raises(PathRefused, match="more than 10000000 bytes"):
        await run("patch", path="lines", old_string="1", new_string="2")
    assert await run("search_files", pattern="x") == "[nothing found]"


async def test_a_patch_must_know_its_place(run: Run, workspace: Path) -> None:
    await run("write_file", path="a", content="x = 1\n  y = 2\nx = 1\n")
    with pytest.raises(ValueError, match=r"occurs 2 times, at lines 1, 3; nothing was changed.*replace_all"):
        await run("patch", path="a", old_string="x = 1", new_string="x = 2")
    with pytest.raises(ValueError, match=r"does not occur in it, but its first line does, at line 2"):
        await run("patch", path="a", old_string="y = 2\n x", new_string="")
    with pytest.raises(ValueError, match="does not occur in it; nothing"):
        await run("patch", path="a", old_string="z", new_string="")
    assert "2 occurrences in a, at lines 1, 3" in await run(
        "patch", path="a", old_string="x = 1", new_string="x = x = 1", replace_all=True
    )
    assert (workspace / "a").read_text() == "x = x = 1\n  y = 2\nx = x = 1\n"


async def test_patches_at_the_same_time_all_last(run: Run, workspace: Path) -> None:
    await run("write_file", path="a", content="".join(f"<{n}>" for n in range(20)))
    await asyncio.gather(*(run("patch", path="a", old_string=f"<{n}>", new_string=f"[{n}]") for n in range(20)))
    assert (workspace / "a").read_text() == "".join(f"[{n}]" for n in range(20))


async def test_writing_keeps_the_mode_and_never_writes_through_a_hard_link(
    run: Run, workspace: Path, tmp_path: Path
) -> None:
    await run("write_file", path="run.sh", content="old")
    (workspace / "run.sh").chmod(0o755)
    os.link(tmp_path / "secret", workspace / "hard")
    await run("write_file", path="run.sh", content="new")
    await run("write_file", path="hard", content="mine")
    assert stat.S_IMODE((workspace / "run.sh").stat().st_mode) == 0o755
    assert (tmp_path / "secret").read_text() == "a secret"
    assert sorted(os.listdir(workspace)) == ["hard", "run.sh"]


async def test_strange_names_are_shown_on_one_line(run: Run, workspace: Path) -> None:
    await run("list_files")
    for name in (b"\xff\xfe", b"a\nb", "ü".encode()):
        (workspace / os.fsdecode(name)).write_text("found")
    assert await run("list_files") == "a\\nb (5 bytes)\nü (5 bytes)\n\\xff\\xfe (5 bytes)"
    assert await run("search_files", pattern="found") == "a\\nb:1:found\nü:1:found\n\\xff\\xfe:1:found\n"


async def test_deep_and_crowded_folders_are_cut(run: Run, workspace: Path) -> None:
    await run("list_files")
    folder = os.open(workspace, os.O_RDONLY)
    for _ in range(300):  # more than one path can name
        os.mkdir("d" * 20, dir_fd=folder)
        inner = os.open("d" * 20, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    listed = await run("list_files", recursive=True)
    assert listed.count("\n") == 65
    assert listed.endswith("too deep or can't be read]")
    for number in range(1200):
        (workspace / f"{number:04}.txt").touch()
    assert (await run("list_files", pattern="*.txt")).endswith(
        "0999.txt (0 bytes)\n[cut: more than 1000 entries; narrow path or pattern]"
    )


async def test_patterns_and_folders_that_are_left_out(run: Run) -> None:
    for path in ("a.py", "src/b.py", "src/x/c.py", "src/x/c.txt", "node_modules/m/d.py", ".git/e.py"):
        await run("write_file", path=path, content="needle")
    assert (await run("list_files", recursive=True, pattern="*.py")).count(".py") == 3
    assert await run("list_files", recursive=True, pattern="src/**/*.py") == (
        "src/b.py (6 bytes)\nsrc/x/c.py (6 bytes)"
    )
    assert (await run("search_files", pattern="needle", glob="*.py")).count("needle") == 3
    assert await run("search_files", pattern="needle", path=".git") == ".git/e.py:1:needle\n"
    assert (await run("search_files", pattern="n", max_results=2)).endswith(
        "[cut: stopped at 2 lines; narrow pattern, path or glob]"
    )


def test_no_glob_takes_long() -> None:
    assert not is_match(("a" * 50,) * 60, "**/" * 100 + "*a" * 100 + "b")
    assert is_match(("a", "b", "c"), "**/**/c")
    assert is_match(("c",), "**/c")
    assert not is_match(("a", "b", "c"), "*/c")


async def test_a_catastrophic_expression_is_stopped_and_blocks_nothing(run: Run, workspace: Path) -> None:
    await run("write_file", path="a", content="match aaa\n" + "a" * 60 + "!\n")
    context = ToolContext(workspace, report=lambda _: None)
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    heart = asyncio.create_task(beat())
    found = await search_files.search(context, r"(a+)+$", ".", "", 10, limit_secs=2)
    heart.cancel()
    assert found.startswith("a:1:match aaa\n[not complete: stopped after 2 seconds")
    assert beats > 50
