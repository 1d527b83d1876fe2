"""Runs the worker that reads a document, for as long as it may take."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from gateway_app.documents.limits import MAX_OUTPUT_BYTES, MAX_SECS
from gateway_app.documents.readers import ReaderQueue, current_owner

# Each of them may take MAX_MEMORY_BYTES and a processor.
MAX_WORKERS = 2
UNREADABLE = 2
_CODE = Path(__file__).parents[2]
_START = "import sys; from gateway_app.documents.worker import main; sys.exit(main())"
_queues: dict[asyncio.AbstractEventLoop, ReaderQueue] = {}


class Unreadable(ValueError):
    """A document can't be read; the message is for the model and the client."""


async def extract(
    kind: str,
    data: bytes,
    address: str = "",
    content_type: str = "",
    max_secs: float = MAX_SECS,
) -> dict[str, str]:
    """The ``text`` of a document of kind ``pdf``, ``html`` or ``text``, and the ``title`` of a page."""
    async with _queue().slot(current_owner.get()):
        try:
            async with asyncio.timeout(max_secs):
                found = await _run(data, kind, address, content_type)
        except TimeoutError:
            raise Unreadable(f"it takes longer than {max_secs:g} seconds to read") from None
    return found


def _queue() -> ReaderQueue:
    loop = asyncio.get_running_loop()
    if loop not in _queues:
        _queues.clear()  # tests have many loops, a server has one
        _queues[loop] = ReaderQueue(MAX_WORKERS)
    return _queues[loop]


async def _run(data: bytes, *arguments: str) -> dict[str, str]:
    # No secret of the server is in the worker's environment.
    environment = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "PYTHONIOENCODING": "utf-8"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _START, *arguments),
        cwd=_CODE,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    sending = asyncio.create_task(_send(process, data))
    try:
        output = await _receive(process)
    finally:
        sending.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(_close(process))
    if process.returncode == UNREADABLE:
        raise Unreadable(output.decode(errors="replace").strip())
    if process.returncode:
        raise Unreadable("it takes more time or memory to read than a document may")
    found: dict[str, str] = json.loads(output)
    return found


async def _send(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # the worker has given up
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()


async def _close(process: asyncio.subprocess.Process) -> None:
    """A pipe that is not read to its end stays open; of a dead process it has little left."""
    assert process.stdout is not None
    while await process.stdout.read(65_536):
        pass
    await process.wait()


async def _receive(process: asyncio.subprocess.Process) -> bytes:
    """A parser that a document takes over could write without end."""
    assert process.stdout is not None
    output = bytearray()
    while chunk := await process.stdout.read(65_536):
        output += chunk
        if len(output) > MAX_OUTPUT_BYTES:
            raise Unreadable("its text is too long")
    await process.wait()
    return bytes(output)
