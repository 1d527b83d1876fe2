"""What a client of Chat Completions sees."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.support.server import (
    Server,
    eventually,
    frames,
    script,
)

PATH = "/v1/chat/completions"
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def scripted(*steps: dict[str, Any]) -> list[dict[str, Any]]:
    return [user(script(*steps))]


def response_id(completion_id: str) -> str:
    assert completion_id.startswith("chatcmpl-")
    return completion_id.replace("chatcmpl-", "resp_")


def post(server: Server, messages: Any, key: str | None = None, **fields: Any) -> httpx.Response:
    headers = fields.pop("headers", {})
    with server.http(key) as client:
        return client.post(PATH, json={"messages": messages, **fields}, headers=headers)


def complete(server: Server, messages: Any, **fields: Any) -> dict[str, Any]:
    answer = post(server, messages, **fields)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@dataclass
class StreamedCompletion:
    """A stream, taken apart; tool frames are kept with the text that had come before them."""

    headers: httpx.Headers
    chunks: list[dict[str, Any]] = field(default_factory=list)
    progress: list[dict[str, Any]] = field(default_factory=list)
    text_before: list[str] = field(default_factory=list)
    consents: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    is_done: bool = False

    @property
    def deltas(self) -> list[dict[str, Any]]:
        return [chunk["choices"][0]["delta"] for chunk in self.chunks if chunk["choices"]]

    def joined(self, name: str) -> str:
        return "".join(delta.get(name) or "" for delta in self.deltas)

    @property
    def reasons(self) -> list[str]:
        found = [chunk["choices"][0]["finish_reason"] for chunk in self.chunks if chunk["choices"]]
        return [reason for reason in found if reason is not None]

    def note(self, frame: bytes) -> None:
        assert not self.is_done
        if frame == b"data: [DONE]\n\n":
            self.is_done = True
            return
        name, _, data = frame.decode().strip().rpartition("data: ")
        payload = json.loads(data)
        if name == "event: hermes.tool.progress\n":
            self.progress.append(payload)
            self.text_before.append(self.joined("content"))
        elif name.startswith("event: hermes.approval."):
            self.consents.append((name.strip().removeprefix("event: hermes.approval."), payload))
        elif "error" in payload:
            self.error = payload["error"]
        else:
            assert name == ""
            self.chunks.append(payload)


@contextmanager
def streamed(server: Server, messages: Any, **fields: Any) -> Iterator[tuple[httpx.Response, Iterator[bytes]]]:
    headers = fields.pop("headers", {})
    body = {"messages": messages, "stream": True, **fields}
    with server.http() as client, client.stream("POST", PATH, json=body, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield answer, frames(answer)


def stream_completion(server: Server, messages: Any, **fields: Any) -> StreamedCompletion:
    with streamed(server, messages, **fields) as (answer, received):
        completion = StreamedCompletion(answer.headers)
        for frame in received:
            if not frame.startswith(b":"):
                completion.note(frame)
    assert completion.is_done
    return completion


def left_waiting(client: httpx.Client, body: dict[str, Any], headers: dict[str, str]) -> str:
    """The run of a completion with ``store`` whose client left, and that waits for consent."""
    with client.stream("POST", PATH, json=body, headers=headers) as answer:
        first = next(answer.iter_lines())
    response_id = first.split('"chatcmpl-')[1].split('"')[0]
    waits = f"/v1/responses/resp_{response_id}/approval"
    eventually(lambda: client.get(waits).json()["pending"], what="the wait for consent")
    return f"run_{response_id}"
