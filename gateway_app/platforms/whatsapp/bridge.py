"""WhatsApp by the bridge: a Node program that `manage.py runplatform whatsapp` runs."""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from gateway_app.config.platforms import PlatformConfig
from gateway_app.config.whatsapp import WhatsAppConfig
from gateway_app.platforms.adapter import (
    Adapter,
    AdapterHealth,
    Incoming,
    MessageRefused,
    Received,
    SendFailed,
    Target,
    sent_at,
)
from gateway_app.platforms.splitting import message_units
from gateway_app.platforms.whatsapp.bridge_process import BridgeProcess
from responses_app.models import PlatformStatus

if TYPE_CHECKING:
    from httpx2 import AsyncClient

logger = logging.getLogger(__name__)

WAIT_SECS = 20  # for the first message, in one request
REQUEST_SECS = 25.0
HANGS_AFTER = 3  # health requests without a reply
IDLE_SECS = 0.5  # while no bridge runs


class BridgeAdapter(Adapter):
    is_polled = True
    can_edit = True

    def __init__(self, config: PlatformConfig, whatsapp: WhatsAppConfig) -> None:
        super().__init__(config)
        self._whatsapp = whatsapp
        folder = Path(settings.HERMES_HOME) / "platforms" / "whatsapp"
        self.process = BridgeProcess(whatsapp, folder)
        self._http: AsyncClient | None = None
        self._running: asyncio.Task[None] | None = None
        self._unanswered = 0  # health requests in a row

    async def start(self) -> None:
        import httpx2  # comes with the SDK, and loads slowly

        self._http = httpx2.AsyncClient(timeout=REQUEST_SECS)
        self._running = asyncio.create_task(self.process.run_forever())

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})
        if self._http is not None:
            await self._http.aclose()

    def check_running(self) -> None:
        """Raises what made it impossible to run the bridge."""
        if self._running is not None and self._running.done():
            self._running.result()

    def room(self, target: Target) -> int:
        """The bridge puts the prefix before each message."""
        prefix = self._whatsapp.prefix_for(is_self_chat=target.is_self_chat)
        return self.limit - message_units(prefix)

    # -- in -----------------------------------------------------------------------------
    async def receive(self, cursor: str) -> Received:
        if not self.process.url:
            await asyncio.sleep(IDLE_SECS)
            return Received()
        query = {"after": cursor, "wait": str(WAIT_SECS)}
        try:
            body = await self._request("GET", "/messages", params=query)
        except (SendFailed, MessageRefused):  # it died; the next one has the same messages
            await asyncio.sleep(IDLE_SECS)
            return Received()
        messages = []
        for message in body["messages"]:
            try:
                messages.append(_incoming(message))
            except (LookupError, TypeError, AttributeError) as error:
                # The cursor goes on: one such message must not hold all others.
                logger.warning("A message of WhatsApp can't be read: %s", type(error).__name__)
        return Received(messages, cursor=str(body["cursor"]))

    # -- out ----------------------------------------------------------------------------
    async def send(self, target: Target, text: str, key: str) -> str:
        fields = {"chatId": target.chat_id, "message": text, "key": key}
        if target.reply_to:
            fields["replyTo"] = target.reply_to
        body = await self._request("POST", "/send", json=fields)
        return str(body["messageId"])

    async def edit(self, target: Target, message_id: str, text: str) -> None:
        fields = {"chatId": target.chat_id, "messageId": message_id, "message": text}
        await self._request("POST", "/edit", json=fields)

    async def show_typing(self, target: Target, message_id: str) -> None:
        chat = {"chatId": target.chat_id}
        if message_id:
            await self._request("POST", "/read", json=chat | {"messageId": message_id})
        await self._request("POST", "/typing", json=chat)

    async def health(self) -> AdapterHealth:
        """A bridge that does not reply several times in a row hangs, and is replaced."""
        if not self.process.url:
            return AdapterHealth(PlatformStatus.CONNECTING, self.process.error)
        try:
            async with asyncio.timeout(settings.HERMES_BRIDGE_REPLY_SECS):
                body = await self._request("GET", "/health")
        except (SendFailed, MessageRefused, TimeoutError):
            self._unanswered += 1
            if self._unanswered >= HANGS_AFTER:
                self._unanswered = 0
                self.process.kill("it does not reply")
            return AdapterHealth(PlatformStatus.FAILED, "The bridge does not reply.")
        self._unanswered = 0
        status = PlatformStatus.FAILED
        if body["status"] in PlatformStatus.values:
            status = PlatformStatus(body["status"])
        return AdapterHealth(status, str(body["error"]), str(body["qr"]))

    async def _request(self, method: str, path: str, **given: Any) -> Any:
        import httpx2

        assert self._http is not None
        if not self.process.url:
            raise SendFailed("The bridge does not run.")
        headers = {"Authorization": f"Bearer {self.process.secret}"}
        try:
            answer = await self._http.request(
                method, self.process.url + path, headers=headers, **given
            )
            body = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            raise SendFailed(f"The bridge does not reply ({type(error).__name__}).") from error
        if answer.status_code == 200:
            return body
        text = f"The bridge answered {answer.status_code}: {body.get('error')}"
        if answer.status_code == 400 or body.get("isPermanent"):
            raise MessageRefused(text)
        raise SendFailed(text)


def _incoming(message: dict[str, Any]) -> Incoming:
    attachment = ""
    if message.get("hasMedia"):
        attachment = str(message.get("mediaType") or "a file")
    return Incoming(
        message_id=str(message["messageId"]),
        chat_id=str(message["chatId"]),
        sender_id=str(message["senderId"]),
        sender_name=str(message.get("senderName") or ""),
        chat_name=str(message.get("chatName") or ""),
        text=str(message.get("body") or ""),
        sent_at=sent_at(message.get("timestamp")),
        attachment=attachment,
        is_group=bool(message.get("isGroup")),
        is_mention=bool(message.get("isMention")),
        is_self_chat=bool(message.get("isSelfChat")),
    )
