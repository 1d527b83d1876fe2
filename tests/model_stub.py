"""A model's server on a real socket, in a thread of its own, that plays what a test tells it to.

It speaks Chat Completions and Responses, streamed or whole, and remembers every request. The pieces
of parallel calls are sent in turn; at a gate the answer stops until the test opens it.
"""

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import zip_longest
from typing import Any

POLL_SECS = 0.005
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
USAGE = {"input": 11, "output": 7, "cached": 3, "written": 2, "reasoned": 5}


@dataclass(frozen=True)
class Said:
    text: str


class Text(Said): ...


class Thought(Said): ...


class Refusal(Said): ...


@dataclass(frozen=True)
class Call:
    call_id: str
    name: str
    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Calls:
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Gate:
    opened: threading.Event


@dataclass(frozen=True)
class Raw:
    data: bytes


@dataclass(frozen=True)
class Finish:
    reason: str = "stop"
    usage: dict[str, int] = field(default_factory=lambda: dict(USAGE))


@dataclass(frozen=True)
class Answer:
    """Not a stream: a status and a body."""

    status: int
    body: bytes


class Cut: ...  # the connection breaks in the middle of the body


Step = Said | Calls | Gate | Raw | Finish | Answer | Cut
HELLO: tuple[Step, ...] = (Text("Hello "), Text("wörld 🎉"), Finish())


@dataclass
class Asked:
    """A request as it arrived; connections are numbered in the order they were made."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    connection: int
    hung_up: threading.Event = field(default_factory=threading.Event)


class ModelStub:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        self.url = ""
        self._scripts: list[Sequence[Step]] = []
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    def play(self, *steps: Step) -> None:
        """What the next request gets; after the last script, every request is greeted."""
        self._scripts.append(steps)

    def __enter__(self) -> "ModelStub":
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        self._started.set()
        await self._stop.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self.connections = self.connections + 1
        try:
            while (asked := await _read_request(reader, number)) is not None:
                self.asked.append(asked)
                script = self._scripts.pop(0) if self._scripts else HELLO
                try:
                    await _Playing(asked, script, reader, writer).play()
                except ConnectionError:
                    asked.hung_up.set()
                    return
        except (asyncio.CancelledError, ConnectionError):
            return
        finally:
            writer.close()


async def _read_request(reader: asyncio.StreamReader, connection: int) -> Asked | None:
    line = await reader.readline()
    if not line:
        return None
    headers: dict[str, str] = {}
    while header := (await reader.readline()).decode().strip():
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(line.split()[1].decode(), headers, json.loads(body or b"{}"), connection)


@dataclass(frozen=True)
class _Playing:
    asked: Asked
    script: Sequence[Step]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def play(self) -> None:
        voice = ResponsesVoice() if self.asked.path.endswith("/responses") else ChatVoice()
        if self.script and isinstance(self.script[0], Answer):
            return await self._answer(self.script[0])
        if not self.asked.body.get("stream"):
            text = "".join(step.text for step in self.script if isinstance(step, Text))
            finish = next(step for step in self.script if isinstance(step, Finish))
            return await self._answer(Answer(200, json.dumps(voice.whole(text, finish)).encode()))
        self.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for step in self.script:
            if isinstance(step, Gate):
                await self._wait(step.opened)
            elif isinstance(step, Cut):
                return self.writer.close()
            else:
                for frame in [step.data] if isinstance(step, Raw) else voice.frames(step):
                    await self._chunk(frame)
        await self._chunk(b"")

    async def _answer(self, answer: Answer) -> None:
        head = f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(answer.body)}\r\n\r\n".encode() + answer.body)
        await self.writer.drain()

    async def _chunk(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self.writer.drain()

    async def _wait(self, opened: threading.Event) -> None:
        while not opened.is_set():
            if self.reader.at_eof() or self.reader.exception() is not None or self.writer.is_closing():
                raise ConnectionResetError
            await asyncio.sleep(POLL_SECS)


def sse(data: Any, event: str = "") -> bytes:
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


class ChatVoice:
    head: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
    fields = {Text: "content", Thought: "reasoning_content", Refusal: "refusal"}

    def frames(self, step: Step) -> list[bytes]:
        match step:
            case Said(text):
                return [self._delta({self.fields[type(step)]: text})]
            case Calls(calls):
                return [self._delta({"tool_calls": [fragment]}) for fragment in _fragments(calls)]
            case Finish(reason, usage):
                counted = self.head | {"choices": [], "usage": _usage(usage, "prompt", "completion")}
                return [self._delta({}, reason), sse(counted), b"data: [DONE]\n\n"]
        raise TypeError(step)

    def whole(self, text: str, finish: Finish) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish.reason}
        usage = _usage(finish.usage, "prompt", "completion")
        return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage}

    def _delta(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        return sse(self.head | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": None})


class ResponsesVoice:
    fields = {Text: "output_text", Thought: "reasoning_summary_text", Refusal: "refusal"}

    def __init__(self) -> None:
        self.output: list[dict[str, Any]] = []

    def frames(self, step: Step) -> list[bytes]:
        match step:
            case Said(text):
                return [self._said(self.fields[type(step)], text)]
            case Calls(calls):
                return self._calls(calls)
            case Finish(reason, usage):
                return self._finish(reason, usage)
        raise TypeError(step)

    def whole(self, text: str, finish: Finish) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}]
        self.output.append({"id": "msg_0", "type": "message", "role": "assistant", "content": content})
        return self._response("completed", finish.usage)

    def _said(self, kind: str, delta: str) -> bytes:
        wanted = "reasoning" if kind.startswith("reasoning") else "message"
        if not self.output or self.output[-1]["type"] != wanted:
            self.output.append({"id": f"{wanted}_{len(self.output)}", "type": wanted})
        return self._event(f"{kind}.delta", len(self.output) - 1, delta=delta)

    def _calls(self, calls: tuple[Call, ...]) -> list[bytes]:
        first, frames = len(self.output), []
        for call in calls:
            item = {"id": f"fc_{call.call_id}", "type": "function_call", "call_id": call.call_id, "name": call.name}
            self.output.append({**item, "arguments": "".join(call.pieces), "status": "completed"})
            added = {**item, "arguments": "", "status": "in_progress"}
            frames.append(self._event("output_item.added", len(self.output) - 1, item=added))
        for place, piece in _in_turn(calls):
            frames.append(self._event("function_call_arguments.delta", first + place, delta=piece))
        done = range(first, len(self.output))
        return frames + [self._event("output_item.done", index, item=self.output[index]) for index in done]

    def _finish(self, reason: str, usage: dict[str, int]) -> list[bytes]:
        cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reason)
        status = "incomplete" if cut else "completed"
        response = self._response(status, usage) | {"incomplete_details": {"reason": cut} if cut else None}
        return [sse({"type": f"response.{status}", "response": response}, f"response.{status}")]

    def _response(self, status: str, usage: dict[str, int]) -> dict[str, Any]:
        head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "stub", "status": status}
        return {**head, "output": self.output, "usage": _usage(usage, "input", "output"), "error": None}

    def _event(self, kind: str, index: int, **fields: Any) -> bytes:
        place = {"item_id": self.output[index]["id"], "output_index": index}
        return sse({"type": f"response.{kind}", **place, **fields}, f"response.{kind}")


def _fragments(calls: tuple[Call, ...]) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(calls):
        function = {"name": call.name, "arguments": ""}
        yield {"index": index, "id": call.call_id, "type": "function", "function": function}
    for index, piece in _in_turn(calls):
        yield {"index": index, "function": {"arguments": piece}}


def _in_turn(calls: tuple[Call, ...]) -> Iterator[tuple[int, str]]:
    for pieces in zip_longest(*(call.pieces for call in calls)):
        yield from ((place, piece) for place, piece in enumerate(pieces) if piece is not None)


def _usage(counts: dict[str, int], inputs: str, outputs: str) -> dict[str, Any]:
    return {
        f"{inputs}_tokens": counts["input"],
        f"{outputs}_tokens": counts["output"],
        "total_tokens": counts["input"] + counts["output"],
        f"{inputs}_tokens_details": {"cached_tokens": counts["cached"], "cache_write_tokens": counts["written"]},
        f"{outputs}_tokens_details": {"reasoning_tokens": counts["reasoned"]},
    }
