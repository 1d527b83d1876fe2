"""A model's server on a real socket, in a thread of its own, that plays the script of a test.

It speaks Chat Completions and Responses, streamed or whole, and remembers every request. The pieces
of parallel calls are sent in turn; at a gate the answer stops until the test opens it.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from tests.support.addresses import LOOPBACK, own_address
from tests.support.model_protocols import ChatProtocol, ResponsesProtocol, sse
from tests.support.model_steps import (
    HELLO,
    Answer,
    Begun,
    Call,
    Calls,
    Cut,
    Dripped,
    Finish,
    Gate,
    Leave,
    Output,
    Pings,
    Raw,
    Refusal,
    Reset,
    Step,
    StreamStyle,
    Text,
    Thought,
)

__all__ = [
    "HELLO",
    "Answer",
    "Begun",
    "Call",
    "Calls",
    "Cut",
    "Dripped",
    "Finish",
    "Gate",
    "Leave",
    "ModelStub",
    "Output",
    "Pings",
    "Raw",
    "Refusal",
    "Reset",
    "Step",
    "StreamStyle",
    "Text",
    "Thought",
    "sse",
]

POLL_SECS = 0.005
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDINGS = (Cut, Reset, Leave)
Rule = Callable[[dict[str, Any]], str | None]  # why the server refuses a request; None if it takes it


@dataclass
class Asked:
    """A request as it arrived; connections are numbered in the order they were made."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int = 0
    is_lookup: bool = False
    hung_up: threading.Event = field(default_factory=threading.Event)


class ModelStub:
    def __init__(self, port: int = 0) -> None:
        self._port = port
        self.asked: list[Asked] = []
        self.connections = 0
        self.url = ""
        self.reports: dict[str, Any] = {}  # path -> what a GET of it gets; of any other, 404
        self.refuse: Rule | None = None
        self._scripts: list[Sequence[Step]] = []
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._server: asyncio.Server
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    def play(self, *steps: Step) -> None:
        """What the next request gets; after the last script, every request is greeted."""
        self._scripts.append(steps)

    @staticmethod
    def whole(mode: str, script: Sequence[Step]) -> bytes:
        """The body of an answer that is not streamed."""
        protocol = ChatProtocol() if mode == "chat_completions" else ResponsesProtocol(StreamStyle())
        return json.dumps(protocol.whole(script)).encode()

    def __enter__(self) -> "ModelStub":
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    async def _serve(self) -> None:
        address = LOOPBACK if self._port else own_address()
        self._server = await asyncio.start_server(self._connected, address, self._port)
        self.url = f"http://{address}:{self._server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        await self._stop.wait()
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = 0  # a connection that only asks for reports is not counted
        try:
            while (asked := await _read_request(reader)) is not None:
                if asked.is_lookup:
                    report = _report(self.reports.get(asked.path))
                    await _Playing(asked, (report,), reader, writer, self._server.close).play()
                    continue
                if not number:
                    number = self.connections = self.connections + 1
                asked.connection = number
                self.asked.append(asked)
                script = self._next_script(asked)
                try:
                    await _Playing(asked, script, reader, writer, self._server.close).play()
                except ConnectionError:
                    asked.hung_up.set()
                    return
        except (asyncio.CancelledError, ConnectionError):
            return
        finally:
            writer.close()

    def _next_script(self, asked: Asked) -> Sequence[Step]:
        reason = self.refuse(asked.body) if self.refuse else None
        if reason:
            return (Answer(400, json.dumps({"error": {"message": reason, "code": 400}}).encode()),)
        return self._scripts.pop(0) if self._scripts else HELLO


def _report(found: Any) -> Answer:
    if found is None:
        return Answer(404, b"{}")
    return Answer(200, json.dumps(found).encode())


async def _read_request(reader: asyncio.StreamReader) -> Asked | None:
    line = await reader.readline()
    if not line:
        return None
    headers: dict[str, str] = {}
    while header := (await reader.readline()).decode().strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = line.decode().split()
    is_lookup = method == "GET" and not path.partition("?")[0].rpartition("/")[0].endswith("/responses")
    return Asked(path, headers, json.loads(body or b"{}"), is_lookup=is_lookup)


@dataclass(frozen=True)
class _Playing:
    asked: Asked
    script: Sequence[Step]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    leave: Callable[[], None]

    async def play(self) -> None:
        first = self.script[0] if self.script else None
        style = first if isinstance(first, StreamStyle) else StreamStyle(has_opening=not isinstance(first, Raw))
        protocol = ResponsesProtocol(style) if self.asked.path.endswith("/responses") else ChatProtocol()
        if isinstance(first, Answer):
            return await self._answer(first)
        if isinstance(first, ENDINGS):
            return self._end(first)
        if not self.asked.body.get("stream"):
            return await self._answer(Answer(200, json.dumps(protocol.whole(self.script)).encode()))
        self.writer.write(STREAM_HEAD)
        for frame in protocol.opening():
            await self._chunk(frame)
        for step in self.script:
            if isinstance(step, ENDINGS):
                return self._end(step)
            await self._step(step, protocol)
        await self._chunk(b"")

    async def _step(self, step: Step, protocol: ChatProtocol | ResponsesProtocol) -> None:
        if isinstance(step, Gate):
            await self._wait(step.opened)
        elif isinstance(step, Pings):
            while True:
                await self._chunk(b": ping\n\n")
                self._check()
                await asyncio.sleep(POLL_SECS)
        elif not isinstance(step, StreamStyle):
            inner, size = (step.step, 1) if isinstance(step, Dripped) else (step, 0)
            for frame in [inner.data] if isinstance(inner, Raw) else protocol.frames(inner):
                for start in range(0, len(frame), size or len(frame)):
                    await self._chunk(frame[start : start + (size or len(frame))])

    def _end(self, step: Step) -> None:
        if isinstance(step, Leave):
            self.leave()
        if isinstance(step, Cut):
            self.writer.close()
        else:
            self.writer.transport.abort()

    async def _answer(self, answer: Answer) -> None:
        head = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: application/json\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in answer.headers.items())
        self.writer.write(f"{head}Content-Length: {len(answer.body)}\r\n\r\n".encode() + answer.body)
        await self.writer.drain()

    async def _chunk(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self.writer.drain()

    async def _wait(self, opened: threading.Event) -> None:
        while not opened.is_set():
            self._check()
            await asyncio.sleep(POLL_SECS)

    def _check(self) -> None:
        if self.reader.at_eof() or self.reader.exception() is not None or self.writer.is_closing():
            raise ConnectionResetError
