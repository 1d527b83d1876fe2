"""Runs a program to its end, its time limit or the caller's cancellation, and leaves nothing behind."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gateway_app.tools.support.cgroups import ControlGroup

GRACE_SECS = 2.0  # between asking a program to end and ending it
LINGER_SECS = 0.5  # for the output of background children once the program itself has ended
CHUNK_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Program:
    argv: tuple[str, ...]
    cwd: Path
    env: dict[str, str]
    pass_fds: tuple[int, ...] = ()
    # It starts its child in a new session and ends it with itself, as bubblewrap does.
    is_wrapper: bool = False
    # The program puts itself into this group, which is made before and removed after.
    group: ControlGroup | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    exit_code: int  # 128 + N after signal N, as in a shell
    is_out_of_time: bool


async def run_program(program: Program, limit_secs: float, take: Callable[[bytes], None]) -> Ending:
    """Its output, both kinds together, goes to ``take`` as it appears.

    The work is done in a task of its own, which is asked to stop and awaited: a cancellation that
    arrives in the middle of starting or ending a process would leave it behind.
    """
    stop = asyncio.Event()
    supervision = asyncio.create_task(_supervise(program, limit_secs, take, stop))
    try:
        return await asyncio.shield(supervision)
    finally:
        stop.set()
        while not supervision.done():
            with suppress(asyncio.CancelledError):  # the first one is on its way already
                await asyncio.wait([supervision])


async def _supervise(
    program: Program, limit_secs: float, take: Callable[[bytes], None], stop: asyncio.Event
) -> Ending:
    if program.group is None:
        return await _supervise_process(program, limit_secs, take, stop)
    try:
        await asyncio.to_thread(program.group.make)
        return await _supervise_process(program, limit_secs, take, stop)
    finally:
        await asyncio.to_thread(program.group.remove)


async def _supervise_process(
    program: Program, limit_secs: float, take: Callable[[bytes], None], stop: asyncio.Event
) -> Ending:
    # With a pipe of asyncio, waiting for the program would wait for every process that holds its output.
    reading, writing = os.pipe()
    try:
        process = await _start(program, writing)
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    pump = asyncio.create_task(_pump(reading, take))
    try:
        await _first_of(process, stop, limit_secs)
        is_out_of_time = process.returncode is None and not stop.is_set()
        if process.returncode is None:
            await _ask_to_end(process, program.is_wrapper)
        else:
            await asyncio.wait([pump], timeout=LINGER_SECS)
    finally:
        _signal(process.pid, signal.SIGKILL)  # also what a program that has ended left in its group
    code = await process.wait()
    await asyncio.wait([pump], timeout=LINGER_SECS)
    pump.cancel()
    with suppress(asyncio.CancelledError):
        await pump
    if code < 0:
        code = 128 - code
    return Ending(code, is_out_of_time)


async def _start(program: Program, output: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *program.argv,
        cwd=program.cwd,
        env=program.env,
        pass_fds=program.pass_fds,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )


async def _first_of(
    process: asyncio.subprocess.Process, stop: asyncio.Event, limit_secs: float
) -> None:
    waits = [asyncio.create_task(process.wait()), asyncio.create_task(stop.wait())]
    try:
        await asyncio.wait(waits, timeout=limit_secs, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def _ask_to_end(process: asyncio.subprocess.Process, is_wrapper: bool) -> None:
    leaders = [process.pid]
    if is_wrapper:
        leaders = _children(process.pid)
    for leader in leaders:
        _signal(leader, signal.SIGTERM)
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_SECS):
            await process.wait()


def _children(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in children.split()]


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def _pump(reading: int, take: Callable[[bytes], None]) -> None:
    reader = asyncio.StreamReader(limit=CHUNK_BYTES)
    make_protocol = partial(asyncio.StreamReaderProtocol, reader)
    pipe = os.fdopen(reading, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(make_protocol, pipe)
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            take(chunk)
    finally:
        transport.close()
