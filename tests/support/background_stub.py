"""A model's server that runs answers in the background, as OpenAI does: events have numbers and are sent again.

Sources: platform.openai.com, guides/background ("streaming a background response": `starting_after`, `cancel`).
"""

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.addresses import own_address

NEVER = 10**9
USAGE = {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}


def text_events(*deltas: str) -> list[dict[str, Any]]:
    """The events of a response with one message."""
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
    message["content"] = [{"type": "output_text", "text": "".join(deltas), "annotations": []}]
    place = {"item_id": "msg_1", "output_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_up1", "status": "queued", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": message | {"content": []}},
    ]
    for delta in deltas:
        events.append({"type": "response.output_text.delta", **place, "content_index": 0, "delta": delta})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": message})
    ended = {"id": "resp_up1", "status": "completed", "output": [message], "usage": USAGE}
    events.append({"type": "response.completed", "response": ended})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


@dataclass
class BackgroundStub:
    """Each connection gets the events up to the next of ``cuts``, a sequence number, and then breaks."""

    events: list[dict[str, Any]] = field(default_factory=lambda: text_events("one ", "two ", "three ", "four"))
    cuts: list[int] = field(default_factory=list)
    gate_at: int = NEVER  # the first connection waits before this number
    is_lost: bool = False  # a GET finds nothing
    refuses_background: bool = False
    posts: list[dict[str, Any]] = field(default_factory=list)
    picked_up: list[int] = field(default_factory=list)  # `starting_after` of each GET
    cancelled: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def __enter__(self) -> "BackgroundStub":
        stub = self

        class Handler(_Handler):
            server_stub = stub

        address = own_address()
        self._server = ThreadingHTTPServer((address, 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://{address}:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_stub: BackgroundStub

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        stub = self.server_stub
        body = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)) or b"{}")
        if self.path.endswith("/cancel"):
            stub.cancelled.append(self.path.split("/")[-2])
            return self._json(200, {"id": "resp_up1", "object": "response", "status": "cancelled", "output": []})
        stub.posts.append(body)
        if stub.refuses_background and body.get("background"):
            return self._json(400, {"error": {"message": "Background mode is not enabled.", "param": "background"}})
        self._stream(-1, gate_at=stub.gate_at if len(stub.posts) == 1 else NEVER)

    def do_GET(self) -> None:
        stub = self.server_stub
        after = int(parse_qs(urlsplit(self.path).query)["starting_after"][0])
        stub.picked_up.append(after)
        if stub.is_lost:
            return self._json(404, {"error": {"message": "Response not found."}})
        self._stream(after, gate_at=NEVER)

    def _json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, after: int, gate_at: int) -> None:
        stub = self.server_stub
        cut = stub.cuts.pop(0) if stub.cuts else NEVER
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        for event in stub.events[after + 1 :]:
            number = event["sequence_number"]
            if number >= gate_at:
                stub.gate.wait(60)
            if number >= cut:
                return
            frame = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            except OSError:
                return
        self.wfile.write(b"0\r\n\r\n")
