"""WhatsApp by Meta's Business Cloud API: webhooks in, the Graph API out."""

import hmac
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from gateway_app.config.platforms import PlatformConfig
from gateway_app.config.whatsapp import WhatsAppConfig
from gateway_app.platforms.adapter import (
    Adapter,
    AdapterHealth,
    MessageRefused,
    Received,
    SendFailed,
    Target,
    WebhookRefused,
)
from gateway_app.platforms.splitting import message_units
from gateway_app.platforms.whatsapp.webhook import check_signature, read_events
from responses_app.models import PlatformStatus

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response

REQUEST_SECS = 20.0
# Meta's codes for limits, which end: calls of the app, of the account, of one pair of numbers.
RATE_LIMITS = (4, 80007, 130429, 131048, 131056, 133016)
TEMPORARY = (1, 2, 131000, 131016, 133004)
TOKEN_CODES = (0, 190)  # the operator can renew the access token


class CloudAdapter(Adapter):
    typing_secs = 20.0  # WhatsApp shows it for 25 seconds

    def __init__(self, config: PlatformConfig, whatsapp: WhatsAppConfig) -> None:
        super().__init__(config)
        self._whatsapp = whatsapp
        self._http: AsyncClient | None = None
        self._error = ""  # of the last request

    async def start(self) -> None:
        import httpx2  # comes with the SDK, and loads slowly

        token = self._whatsapp.access_token
        self._http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"}, timeout=REQUEST_SECS
        )

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    def room(self, target: Target) -> int:
        return self.limit - message_units(self._prefix(target))

    def _prefix(self, target: Target) -> str:
        return self._whatsapp.prefix_for(is_self_chat=target.is_self_chat)

    # -- in -----------------------------------------------------------------------------
    def challenge(self, query: Mapping[str, str]) -> str:
        token = query.get("hub.verify_token", "").encode()
        is_known = hmac.compare_digest(token, self._whatsapp.verify_token.encode())
        if query.get("hub.mode") != "subscribe" or not is_known:
            raise WebhookRefused(403, "hub.verify_token is not the one of this server.")
        return query.get("hub.challenge", "")

    def read_webhook(self, headers: Mapping[str, str], body: bytes) -> Received:
        check_signature(headers, body, self._whatsapp.app_secret)
        return read_events(body, self._whatsapp.phone_number_id)

    # -- out ----------------------------------------------------------------------------
    async def send(self, target: Target, text: str, key: str) -> str:
        """The key comes back with the statuses of the message."""
        message: dict[str, Any] = {
            "recipient_type": "individual",
            "to": target.chat_id,
            "type": "text",
            "text": {"body": self._prefix(target) + text, "preview_url": False},
            "biz_opaque_callback_data": key,
        }
        if target.reply_to:
            message["context"] = {"message_id": target.reply_to}
        body = await self._post(message)
        try:
            return str(body["messages"][0]["id"])
        except (KeyError, IndexError, TypeError):
            raise SendFailed("The Graph API named no message.") from None

    async def show_typing(self, target: Target, message_id: str) -> None:
        if message_id:
            await self._post(
                {
                    "status": "read",
                    "message_id": message_id,
                    "typing_indicator": {"type": "text"},
                }
            )

    async def _post(self, fields: dict[str, Any]) -> Any:
        import httpx2

        assert self._http is not None
        address = (
            f"{self._whatsapp.graph_url.rstrip('/')}/{self._whatsapp.phone_number_id}/messages"
        )
        try:
            answer = await self._http.post(address, json={"messaging_product": "whatsapp"} | fields)
        except httpx2.HTTPError as error:
            self._error = f"The Graph API can't be reached ({type(error).__name__})."
            raise SendFailed(self._error) from error
        return self._checked(answer)

    def _checked(self, answer: "Response") -> Any:
        body = _json(answer)
        if answer.status_code < 300 and isinstance(body, dict):
            self._error = ""
            return body
        code, text = _graph_error(body)
        # Meta repeats an access token that it does not know.
        text = text.replace(self._whatsapp.access_token, "…")
        error = f"The Graph API answered {answer.status_code}: {code} {text}".strip()
        is_temporary = answer.status_code >= 500 or code in RATE_LIMITS + TEMPORARY + TOKEN_CODES
        if is_temporary or answer.status_code in (401, 408, 429):
            self._error = error
            raise SendFailed(error, _retry_after(answer))
        raise MessageRefused(error)  # it counts for this message alone

    async def health(self) -> AdapterHealth:
        """From the last request: one of its own would count to a limit."""
        if self._error:
            return AdapterHealth(PlatformStatus.FAILED, self._error)
        return AdapterHealth(PlatformStatus.CONNECTED)


def _json(answer: "Response") -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _graph_error(body: Any) -> tuple[int | None, str]:
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return None, ""
    code = error.get("code")
    details = error.get("error_data") or {}
    text = details.get("details") if isinstance(details, dict) else None
    return code, str(text or error.get("message") or "")


def _retry_after(answer: "Response") -> float | None:
    """In seconds; the header has a number or a date."""
    value = answer.headers.get("Retry-After", "")
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max((at - datetime.now(at.tzinfo)).total_seconds(), 0.0)
