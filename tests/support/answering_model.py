"""A model's server that answers by what it is asked, as a real one does: in any order and any number of times.

It speaks Chat Completions in streams. A test takes capabilities away from it.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Message = dict[str, Any]
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@dataclass
class AnsweringModel:
    """Everything works, unless a test says otherwise."""

    name: str = "m-1"
    listed: dict[str, Any] = field(default_factory=dict)  # more fields of its entry in the list of models
    has_tools: bool = True
    has_formats: bool = True
    has_usage: bool = True
    refused_field: str = ""
    continues: bool = True  # a message of the assistant at the end of a request
    is_silent: bool = False
    key: str = ""  # the only one that it accepts; empty: any
    asked: list[dict[str, Any]] = field(default_factory=list)
    asked_headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def __enter__(self) -> "AnsweringModel":
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def wait_if_silent(self) -> None:
        if self.is_silent:
            self._released.wait(60)

    def refusal(self, body: dict[str, Any]) -> str:
        if self.refused_field in body:
            return f"Unknown name {self.refused_field!r}"
        if "tools" in body and not self.has_tools:
            return "This model does not support tools."
        if "response_format" in body and not self.has_formats:
            return "Unsupported response_format."
        return ""

    def deltas(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        messages: list[Message] = body["messages"]
        prompt = _text(next(message for message in messages if message["role"] == "user"))
        if "tools" in body:
            cities = [city for city in ("Paris", "Rome") if city in prompt]
            return [_call(index, city) for index, city in enumerate(cities)]
        if body.get("reasoning_effort"):
            return [{"reasoning_content": "17 * 20 is 340, and 51 more"}, {"content": "391"}]
        if "from one to ten" in prompt:
            return [{"content": self._counted()}]
        return [{"content": self._answer(prompt, body)}]

    def _counted(self) -> str:
        if self.continues:
            return "ve, six, seven, eight, nine, ten"
        return "one, two, three, four, five, six, seven, eight, nine, ten"

    def _answer(self, prompt: str, body: dict[str, Any]) -> str:
        if "response_format" in body:
            return '{"city": "Rome", "inhabitants": 2800000}'
        if "colour" in prompt:
            return "Red."
        if "code word is" in prompt:
            return prompt.partition("code word is ")[2].partition(".")[0]
        return "ready"


def _text(message: Message) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content)


def _call(index: int, city: str) -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": json.dumps({"city": city})}
    return {"tool_calls": [{"index": index, "id": f"call_{index}", "type": "function", "function": function}]}


def _handler(model: AnsweringModel) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            model.paths.append(self.path)
            model.headers.append(dict(self.headers))
            if model.key and self.headers["Authorization"] != f"Bearer {model.key}":
                return self._send(401, {"error": {"message": "Incorrect API key."}})
            self._send(200, {"data": [{"id": model.name, **model.listed}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            model.asked.append(body)
            model.asked_headers.append({name.lower(): value for name, value in self.headers.items()})
            model.wait_if_silent()
            refusal = model.refusal(body)
            if refusal:
                return self._send(400, {"error": {"message": refusal, "type": "invalid_request_error"}})
            deltas = model.deltas(body)
            reason = "tool_calls" if "tool_calls" in deltas[0] else "stop"
            frames: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
            frames.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
            if model.has_usage:
                frames.append({"choices": [], "usage": USAGE})
            data = "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames) + "data: [DONE]\n\n"
            self._send_bytes(200, "text/event-stream", data.encode())

        def _send(self, status: int, body: dict[str, Any]) -> None:
            self._send_bytes(status, "application/json", json.dumps(body).encode())

        def _send_bytes(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler
