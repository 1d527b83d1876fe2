"""The fake platform as a person and a test see it: messages in, a file of what was sent."""

import json
import time
from typing import Any

import httpx

from tests.support.server import Server, eventually
from tests.support.stored_rows import stored_rows

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
        found = stored_rows(server, "inboxmessage", "response_id", message_id=message_id)
        return found and found[0][0]

    found: str = eventually(look, what=f"the admission of {message_id}")
    return found


def hold(server: Server, name: str, text: str = "") -> None:
    """Make the platform misbehave; see tests/support/gated_platform.py."""
    folder = server.home / "platform_faults"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


def let_go(server: Server, name: str) -> None:
    (server.home / "platform_faults" / name).unlink()


def outbox(server: Server) -> list[tuple[Any, ...]]:
    return stored_rows(server, "outboxmessage", "key", "status", "text", order_by="id")


def inbox_row(server: Server, message_id: str) -> list[tuple[Any, ...]]:
    """Its status, the reason of that, and its text."""
    return stored_rows(server, "inboxmessage", "status", "reason", "text", message_id=message_id)


def outbox_row(server: Server, key: str) -> list[tuple[Any, ...]]:
    """Its status, its error, and the platform's id of it."""
    return stored_rows(server, "outboxmessage", "status", "error", "platform_message_id", key=key)


def until_status(server: Server, key: str, status: str) -> None:
    eventually(lambda: [row[0] for row in outbox_row(server, key)] == [status], 20, f"{key} {status}")
