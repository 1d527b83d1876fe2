"""The fake platform as a person and a test see it: messages in, a file of what was sent."""

import json
import time
from typing import Any

import httpx

from tests.support.server import Server, eventually

FAKE = "platforms:\n  fake: {{enabled: true, allowed_senders: ['*']{more}}}\n"
EVENTS = "/api/platforms/fake/events"


def fake_config(**options: Any) -> str:
    return FAKE.format(more="".join(f", {name}: {json.dumps(value)}" for name, value in options.items()))


def message(message_id: str, text: str, chat: str = "anna", **fields: Any) -> dict[str, Any]:
    return {"id": message_id, "chat": chat, "text": text, "at": time.time(), **fields}


def deliver(server: Server, *messages: dict[str, Any]) -> httpx.Response:
    with server.http() as client:
        return client.post(EVENTS, json={"messages": list(messages)})


def write(server: Server, message_id: str, text: str, chat: str = "anna", **fields: Any) -> None:
    answer = deliver(server, message(message_id, text, chat, **fields))
    assert answer.status_code == 200, answer.text


def lines(server: Server) -> list[dict[str, Any]]:
    path = server.home / "platforms/fake/sent.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def sent(server: Server, chat: str = "anna") -> list[str]:
    """The texts that the platform took as new messages, in order."""
    return [line["text"] for line in lines(server) if "sent" in line and line["chat"] == chat]


def until_sent(server: Server, count: int, chat: str = "anna", secs: float = 20) -> list[str]:
    def look() -> list[str] | None:
        found = sent(server, chat)
        return found if len(found) >= count else None

    found: list[str] = eventually(look, secs, f"{count} messages to {chat} (see {server.log_path})")
    return found


def response_of(server: Server, message_id: str) -> str:
    def look() -> Any:
        sql = "SELECT response_id FROM responses_app_inboxmessage WHERE message_id = ? AND response_id IS NOT NULL"
        return server.query(sql, message_id)

    found: str = eventually(look, what=f"the admission of {message_id}")[0][0]
    return found


def hold(server: Server, name: str, text: str = "") -> None:
    """Make the platform misbehave; see tests/support/gated_platform.py."""
    folder = server.home / "platform_faults"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def let_go(server: Server, name: str) -> None:
    (server.home / "platform_faults" / name).unlink()


def outbox(server: Server) -> list[tuple[Any, ...]]:
    return server.query("SELECT key, status, text FROM responses_app_outboxmessage ORDER BY id")
