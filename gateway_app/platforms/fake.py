"""The fake platform, for tests and demonstrations: webhooks in, a file out.

``POST /api/platforms/fake/events`` with the root key brings messages. What the server sends is a
line of ``platforms/fake/sent.jsonl`` in its home.
"""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from gateway_app.config.platforms import PlatformConfig
from gateway_app.platforms.adapter import Adapter, Incoming, Received, Target, WebhookRefused
from responses_app.http.principals import is_root


class FakePlatform(Adapter):
    typing_secs = 1.0

    def __init__(self, config: PlatformConfig) -> None:
        super().__init__(config)
        self.can_edit = bool(config.options.get("edits", False))
        self.limit = int(config.options.get("limit", Adapter.limit))
        self._folder = Path(settings.HERMES_HOME) / "platforms" / "fake"
        self._sent = 0

    def challenge(self, query: Mapping[str, str]) -> str:
        """No secret is in it: the address is all that it shows."""
        return query.get("hub.challenge", "")

    def read_webhook(self, headers: Mapping[str, str], body: bytes) -> Received:
        if not is_root(headers.get("Authorization")):
            raise WebhookRefused(401, "Send the server's root key.")
        try:
            given = json.loads(body)
            messages = [_incoming(message) for message in given["messages"]]
        except (ValueError, KeyError, TypeError, OverflowError, OSError) as error:
            message = f"Send messages with id, chat and text: {error}"
            raise WebhookRefused(400, message, param="messages") from error
        return Received(messages)

    async def send(self, target: Target, text: str, key: str) -> str:
        self._sent += 1
        message_id = f"fake-{time.time_ns()}-{self._sent}"
        self._write({"sent": message_id, "chat": target.chat_id, "text": text, "key": key})
        return message_id

    async def edit(self, target: Target, message_id: str, text: str) -> None:
        self._write({"edited": message_id, "chat": target.chat_id, "text": text})

    async def show_typing(self, target: Target, message_id: str) -> None:
        self._write({"typing": message_id, "chat": target.chat_id})

    def _write(self, line: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "sent.jsonl").open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _incoming(message: Mapping[str, Any]) -> Incoming:
    at = datetime.fromtimestamp(float(message.get("at", time.time())), UTC)
    return Incoming(
        message_id=str(message["id"]),
        chat_id=str(message["chat"]),
        sender_id=str(message.get("sender", message["chat"])),
        sender_name=str(message.get("name", "")),
        text=str(message["text"]),
        sent_at=at,
        is_group=bool(message.get("group", False)),
        is_mention=bool(message.get("mention", False)),
        is_self_chat=bool(message.get("self", False)),
    )
