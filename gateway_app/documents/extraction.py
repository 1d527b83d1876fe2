"""Runs the worker that reads a document, for as long as it may take."""

import asyncio
import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from gateway_app.documents.limits import MAX_SECS, MAX_TEXT_CHARS

# Each of them may take MAX_MEMORY_BYTES and a processor.
MAX_WORKERS = 2
UNREADABLE = 2
_CODE = Path(__file__).parents[2]
_START = "import sys; from gateway_app.documents.worker import main; sys.exit(main())"
_slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}


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
    async with _slot():
        try:
            async with asyncio.timeout(max_secs):
                found = await _run(data, kind, address, content_type)
        except TimeoutError:
            raise Unreadable(f"it takes longer than {max_secs:g} seconds to read") from None
    found["text"] = cut(found["text"])
    return found


def cut(text: str) -> str:
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[:MAX_TEXT_CHARS]}\n[cut: the first {MAX_TEXT_CHARS} characters are shown]"


def _slot() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    if loop not in _slots:
        _slots.clear()  # tests have many loops, a server has one
        _slots[loop] = asyncio.Semaphore(MAX_WORKERS)
    return _slots[loop]


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
    try:
        output, _ = await process.communicate(data)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.shield(process.wait())
    if process.returncode == UNREADABLE:
        raise Unreadable(output.decode(errors="replace").strip())
    if process.returncode:
        raise Unreadable("it takes more time or memory to read than a document may")
    found: dict[str, str] = json.loads(output)
    return found
