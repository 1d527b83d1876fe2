"""A local server that speaks the part of Meta's Graph API that sends WhatsApp messages."""

import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from tests.support.server import Server, eventually

APP_SECRET = "app-secret-of-the-tests"
VERIFY_TOKEN = "verify-token-of-the-tests"
TOKEN = "EAAG-access-token"
PHONE = "106540352242922"
EVENTS = "/api/platforms/whatsapp/events"


class GraphApi:
    """Keeps what it was sent; ``replies`` are given first, one by one, then every message is taken."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.typing: list[str] = []
        self.authorizations: set[str | None] = set()
        self.replies: list[tuple[int, dict[str, str], Any]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> "GraphApi":
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v23.0"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, headers, reply = api.reply_to(self.path, self.headers["Authorization"], body)
                data = json.dumps(reply).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        return Handler

    def reply_to(self, path: str, authorization: str | None, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        with self._lock:
            self.authorizations.add(authorization)
            if path != f"/v23.0/{PHONE}/messages" or body["messaging_product"] != "whatsapp":
                return 404, {}, {"error": {"code": 100, "message": f"Unknown path {path}"}}
            if "typing_indicator" in body:
                self.typing.append(body["message_id"])
                return 200, {}, {"success": True}
            if self.replies:
                return self.replies.pop(0)
            message_id = f"wamid.sent{len(self.messages)}"
            self.messages.append(body | {"id": message_id, "at": time.time()})
            return 200, {}, {"messaging_product": "whatsapp", "messages": [{"id": message_id}]}

    def texts(self) -> list[str]:
        return [message["text"]["body"] for message in self.messages]

    def until_sent(self, count: int) -> list[dict[str, Any]]:
        eventually(lambda: len(self.messages) >= count, 20, f"{count} messages at the Graph API")
        return self.messages


def cloud_config(api: GraphApi, **options: Any) -> str:
    section = {
        "enabled": True,
        "transport": "cloud",
        "phone_number_id": PHONE,
        "access_token": TOKEN,
        "app_secret": APP_SECRET,
        "verify_token": VERIFY_TOKEN,
        "graph_url": api.url,
        "allowed_senders": ["+491700"],
        **options,
    }
    return json.dumps({"whatsapp": section})  # JSON is YAML


def event(phone: str = PHONE, **value: Any) -> dict[str, Any]:
    metadata = {"display_phone_number": "49123", "phone_number_id": phone}
    change = {"field": "messages", "value": {"messaging_product": "whatsapp", "metadata": metadata, **value}}
    return {"object": "whatsapp_business_account", "entry": [{"id": "1", "changes": [change]}]}


def text_message(message_id: str, text: str, sender: str = "491700") -> dict[str, Any]:
    message = {"from": sender, "id": message_id, "timestamp": str(int(time.time())), "type": "text"}
    return event(
        contacts=[{"profile": {"name": "Anna"}, "wa_id": sender}], messages=[message | {"text": {"body": text}}]
    )


def signature(body: bytes, secret: str = APP_SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def deliver_event(server: Server, given: dict[str, Any], **headers: str) -> httpx.Response:
    """As Meta does: signed, and without any key of the server."""
    body = json.dumps(given).encode()
    signed = {"X-Hub-Signature-256": signature(body), "Content-Type": "application/json", **headers}
    with httpx.Client(base_url=server.url, timeout=30) as client:
        return client.post(EVENTS, content=body, headers=signed)
