"""What a messaging platform has to do. A new one is a file with a subclass of ``Adapter``."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

from gateway_app.config.platforms import PlatformConfig
from responses_app.models import PlatformStatus
from responses_app.protocol.errors import ApiError


class SendFailed(Exception):
    """The platform did not take a message; a later try may succeed."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # in seconds, where the platform named it


class MessageRefused(Exception):
    """The platform will never take this message."""


class WebhookRefused(ApiError):
    """A webhook request that does not come from the platform, or that can't be read."""

    code = "webhook_refused"

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message, status=status, param=param)


@dataclass(frozen=True, kw_only=True)
class Incoming:
    """A message of a person, as every platform has it."""

    message_id: str
    chat_id: str
    sender_id: str
    text: str
    sent_at: datetime
    sender_name: str = ""
    chat_name: str = ""
    attachment: str = ""  # the kind of what came with it and can't be read here
    is_group: bool = False
    is_mention: bool = False  # in a group: it names this account, or answers one of its messages
    is_self_chat: bool = False
    ignored_because: str = ""  # for what is not a message to answer, such as a reaction


def sent_at(timestamp: Any) -> datetime:
    """Now where the time makes no sense: one such message must not hold all others."""
    try:
        return datetime.fromtimestamp(float(timestamp), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return datetime.now(UTC)


@dataclass(frozen=True)
class Receipt:
    """The platform has a message; ``key`` is the one that was sent with it."""

    key: str
    message_id: str
    error: str = ""  # it could not be delivered


@dataclass(frozen=True)
class Received:
    messages: Sequence[Incoming] = ()
    receipts: Sequence[Receipt] = ()
    cursor: str = ""  # stored with the messages, and named in the next call of ``receive``


@dataclass(frozen=True)
class Target:
    """Where a message goes."""

    chat_id: str
    is_self_chat: bool = False
    reply_to: str = ""


@dataclass(frozen=True)
class AdapterHealth:
    status: PlatformStatus
    error: str = ""
    pairing_code: str = ""
    details: Mapping[str, str] = field(default_factory=dict)


class Adapter(ABC):
    """One platform. The inbox and the outbox around it make nothing of it get lost."""

    limit: int = 4096  # characters of one message
    can_edit: bool = False
    typing_secs: float = 10.0  # how long the platform shows "typing"
    # Polled by `manage.py runplatform`; others send webhooks to the server itself.
    is_polled: ClassVar[bool] = False

    def __init__(self, config: PlatformConfig) -> None:
        self.config = config

    @property
    def name(self) -> str:
        return self.config.name

    async def start(self) -> None:  # noqa: B027 - most have nothing to open
        """On the event loop, before anything else is called."""

    async def stop(self) -> None:  # noqa: B027
        pass

    def check_running(self) -> None:  # noqa: B027
        """Raises what makes it impossible to go on."""

    def room(self, target: Target) -> int:
        """How many characters of a text fit into one message to that chat."""
        return self.limit

    # -- in -----------------------------------------------------------------------------
    def challenge(self, query: Mapping[str, str]) -> str:
        """The reply to the platform's check of the webhook's address."""
        raise WebhookRefused(405, "This platform does not check its webhook.")

    def read_webhook(self, headers: Mapping[str, str], body: bytes) -> Received:
        """Messages that the platform brings. They are stored before it gets a 200."""
        raise WebhookRefused(404, "This platform sends no webhooks.")

    async def receive(self, cursor: str) -> Received:
        """Messages after the cursor, for a platform that is polled; waits a while for the first."""
        raise NotImplementedError

    # -- out ----------------------------------------------------------------------------
    @abstractmethod
    async def send(self, target: Target, text: str, key: str) -> str:
        """Returns the platform's id of the message. Raises SendFailed or MessageRefused.

        A platform that knows the key from an earlier call returns the id of that message.
        """

    async def edit(self, target: Target, message_id: str, text: str) -> None:
        """Only where ``can_edit``; raises as ``send`` does."""
        raise NotImplementedError

    async def show_typing(self, target: Target, message_id: str) -> None:  # noqa: B027
        """``message_id`` is the message that is being answered."""

    async def health(self) -> AdapterHealth:
        return AdapterHealth(PlatformStatus.CONNECTED)
