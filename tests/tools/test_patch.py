"""What one patch may cost the others: bounded memory and disk, and no lock between tenants."""

import asyncio
import os
import tracemalloc
from pathlib import Path

import pytest

from gateway_app.agent.tools import ToolContext
from gateway_app.tools.patch import MAX_FILE_BYTES, patch, workspace_lock

MEGABYTE = 1_000_000


def ignore(piece: str) -> None:
    """No reader wants the progress of a patch."""


async def run(workspace: Path, **arguments: object) -> str:
    return await patch(dict(arguments), ToolContext(workspace, ignore))


async def test_a_patch_that_multiplies_a_file_is_refused_before_it_costs_memory(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"a" * MEGABYTE)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="would have 400000000 bytes"):
            await run(tmp_path, path="a", old_string="a", new_string="b" * 400, replace_all=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * MAX_FILE_BYTES
    assert file.read_bytes() == b"a" * MEGABYTE
    assert os.listdir(tmp_path) == ["a"]


async def test_many_occurrences_cost_little_more_than_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a\n" * (MAX_FILE_BYTES // 2))
    tracemalloc.start()
    try:
        replaced = await run(tmp_path, path="a", old_string="a", new_string="b", replace_all=True)
        with pytest.raises(ValueError, match="but its first line does, at lines 1, 2"):
            await run(tmp_path, path="a", old_string="b\n\n", new_string="c")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert replaced.startswith("Replaced 5000000 occurrences in a, at lines 1, 2, 3")
    assert peak < 5 * MAX_FILE_BYTES


async def test_a_patch_of_one_tenant_does_not_wait_for_another(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for workspace in (mine, theirs):
        workspace.mkdir()
        (workspace / "a").write_text("old")
    async with workspace_lock(mine):
        waiting = asyncio.create_task(run(mine, path="a", old_string="old", new_string="mine"))
        await run(theirs, path="a", old_string="old", new_string="theirs")
        assert not waiting.done()
    await waiting
    assert [(workspace / "a").read_text() for workspace in (mine, theirs)] == ["mine", "theirs"]
