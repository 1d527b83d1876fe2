"""A cheap model on a socket, in a process of its own: ``python -m bench.model PORT``.

It speaks Chat Completions and Responses, streamed and whole. A token is the time at which it is sent, so that the
client knows the delay of every single one. The text of a request states how many tokens come, and how fast.
"""

import asyncio
import json
import random
import sys
from typing import Any, Protocol

from bench.wire import read_order, stamp

HOST = "127.0.0.1"
FLOOD_TOKENS = 20  # per write where tokens come as fast as possible
JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
MODEL = "bench-model"


class Dialect(Protocol):
    before: bytes
    after: bytes

    def opening(self) -> bytes: ...
    def closing(self, text: str, tokens: int) -> bytes: ...
    def whole(self, text: str, tokens: int) -> bytes: ...


def frame(event: dict[str, Any], name: str = "") -> bytes:
    head = b"event: %s\n" % name.encode() if name else b""
    return head + b"data: %s\n\n" % json.dumps(event, separators=(",", ":")).encode()


class Chat:
    before = (
        b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"bench-model",'
        b'"choices":[{"index":0,"delta":{"content":"'
    )
    after = b'"},"finish_reason":null}]}\n\n'

    def _chunk(self, choices: list[dict[str, Any]], **fields: Any) -> bytes:
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
        return frame(head | {"choices": choices} | fields)

    def opening(self) -> bytes:
        return self._chunk([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])

    def closing(self, text: str, tokens: int) -> bytes:
        finish = self._chunk([{"index": 0, "delta": {}, "finish_reason": "stop"}])
        return finish + self._chunk([], usage=self._usage(tokens)) + b"data: [DONE]\n\n"

    def whole(self, text: str, tokens: int) -> bytes:
        message = {"role": "assistant", "content": text}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": MODEL}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        return json.dumps(head | {"choices": choices, "usage": self._usage(tokens)}).encode()

    @staticmethod
    def _usage(tokens: int) -> dict[str, int]:
        return {"prompt_tokens": 10, "completion_tokens": tokens, "total_tokens": 10 + tokens}


class Responses:
    before = (
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":4,'
        b'"item_id":"msg_1","output_index":0,"content_index":0,"delta":"'
    )
    after = b'","logprobs":[]}\n\n'
    WHERE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}

    def __init__(self) -> None:
        self._sequence = 0

    def opening(self) -> bytes:
        body = self._body("in_progress", [])
        return (
            self._event("response.created", response=body)
            + self._event("response.in_progress", response=body)
            + self._event("response.output_item.added", output_index=0, item=self._item("in_progress", []))
            + self._event("response.content_part.added", part=self._part(""), **self.WHERE)
        )

    def closing(self, text: str, tokens: int) -> bytes:
        part = self._part(text)
        item = self._item("completed", [part])
        body = self._body("completed", [item], tokens)
        return (
            self._event("response.output_text.done", text=text, logprobs=[], **self.WHERE)
            + self._event("response.content_part.done", part=part, **self.WHERE)
            + self._event("response.output_item.done", output_index=0, item=item)
            + self._event("response.completed", response=body)
        )

    def whole(self, text: str, tokens: int) -> bytes:
        item = self._item("completed", [self._part(text)])
        return json.dumps(self._body("completed", [item], tokens)).encode()

    def _event(self, kind: str, **fields: Any) -> bytes:
        self._sequence += 1
        return frame({"type": kind, "sequence_number": self._sequence - 1, **fields}, kind)

    @staticmethod
    def _part(text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    @staticmethod
    def _item(status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": content}

    @staticmethod
    def _body(status: str, output: list[dict[str, Any]], tokens: int | None = None) -> dict[str, Any]:
        usage = None
        if tokens is not None:
            usage = {
                "input_tokens": 10,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": tokens,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 10 + tokens,
            }
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": MODEL,
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "usage": usage,
        }


def make_vocabulary(size: int = 4000) -> list[bytes]:
    """Words with the lengths of a real model's tokens; they compress like prose, not like a stamp."""
    source = random.Random(1)
    letters = "etaoinshrdlucmwfgypbvkxjqz"
    weights = [12, 9, 8, 8, 7, 7, 6, 6, 6, 4, 4, 3, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1]
    words = []
    for _ in range(size):
        length = source.choice((1, 2, 2, 3, 3, 4, 4, 5, 6, 7))
        words.append(("".join(source.choices(letters, weights, k=length)) + " ").encode())
    return words


VOCABULARY = make_vocabulary()
# The n-th word is 1/n as frequent as the first, as in every language.
WEIGHTS = [1 / number for number in range(1, len(VOCABULARY) + 1)]
PROSE = random.Random(2).choices(VOCABULARY, WEIGHTS, k=50_000)


class Answer:
    """The tokens of one streamed response."""

    def __init__(self, connection: "Connection", dialect: Dialect, tokens: int, pace: float, words: bool) -> None:
        self._connection = connection
        self._dialect = dialect
        self._tokens = tokens
        self._pace = pace
        self._words = words
        self._sent: list[bytes] = []
        self._started = connection.loop.time()
        self._frame_bytes = len(dialect.before) + len(stamp()) + len(dialect.after)
        self._edge = b"%x\r\n" % self._frame_bytes + dialect.before

    def begin(self) -> None:
        self._started = self._connection.loop.time()
        opening = self._dialect.opening()
        self._connection.write(STREAM_HEAD + chunk(opening))
        if self._pace:
            self._next_paced()
        else:
            self._next_flood()

    def _token(self) -> bytes:
        if not self._words:
            token = stamp()
            self._sent.append(token)
            return b"%s%s%s\r\n" % (self._edge, token, self._dialect.after)
        token = PROSE[len(self._sent) % len(PROSE)]
        self._sent.append(token)
        return chunk(self._dialect.before + token + self._dialect.after)

    def _next_paced(self) -> None:
        """Each token is due at a fixed time after the first, so that a late one does not slow the others."""
        if self._connection.is_lost:
            return
        if len(self._sent) == self._tokens:
            return self._end()
        self._connection.write(self._token())
        due = self._started + len(self._sent) / self._pace
        self._connection.loop.call_at(due, self._next_paced)

    def _next_flood(self) -> None:
        if self._connection.is_lost:
            return
        if self._connection.is_paused:
            self._connection.on_resume = self._next_flood
            return
        count = min(FLOOD_TOKENS, self._tokens - len(self._sent))
        if count == 0:
            return self._end()
        self._connection.write(b"".join([self._token() for _ in range(count)]))
        self._connection.loop.call_soon(self._next_flood)

    def _end(self) -> None:
        text = b"".join(self._sent).decode()
        self._connection.write(chunk(self._dialect.closing(text, self._tokens)) + b"0\r\n\r\n")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_lost = False
        self.is_paused = False
        self.on_resume: Any = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.write = transport.write

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        resume, self.on_resume = self.on_resume, None
        if resume is not None:
            resume()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, separator, rest = self._received.partition(b"\r\n\r\n")
        if not separator:
            return
        length = content_length(head)
        if len(rest) < length:
            return
        self._received = rest[length:]
        self._answer(head, rest[:length])

    def _answer(self, head: bytes, body: bytes) -> None:
        path = head.split(b" ", 2)[1]
        if path.endswith(b"/models"):
            listed = {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 1, "owned_by": "bench"}]}
            return self._send_json(json.dumps(listed).encode())
        dialect: Dialect = Responses() if path.endswith(b"/responses") else Chat()
        tokens, pace, words, after = read_order(body)
        if b'"stream":true' in body or b'"stream": true' in body:
            answer = Answer(self, dialect, tokens, pace, words)
            self.loop.call_later(after, answer.begin) if after else answer.begin()
            return None
        source = PROSE[:tokens] if words else [stamp() for _ in range(tokens)]
        return self._send_json(dialect.whole(b"".join(source).decode(), tokens))

    def _send_json(self, body: bytes) -> None:
        self.write(JSON_HEAD % len(body) + body)


def content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def main() -> None:
    port = int(sys.argv[1])
    server = await asyncio.get_running_loop().create_server(Connection, HOST, port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
