"""From a message in the inbox to a turn of its chat's session, exactly once."""

import logging
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q
from django.utils.module_loading import import_string

from gateway_app.config.platforms import PlatformConfig
from gateway_app.platforms.registry import adapters
from gateway_app.platforms.replies import NOT_ADMITTED, store_message
from responses_app.database import database
from responses_app.http.principals import Principal, root_owner
from responses_app.models import InboxMessage, Kind, PlatformChat, Session
from responses_app.protocol.errors import ApiError, InvalidRequest, StorageUnavailable
from responses_app.requests.create import read_create
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lifecycle.admit import admit
from responses_app.services.profiles import default_model

logger = logging.getLogger(__name__)

ADMITTED_AT_ONCE = 50
MAX_ATTEMPTS = 5
FIRST_DELAY = timedelta(seconds=2)  # doubled with each attempt
TERMINAL = "terminal"
OWN_LABEL = "hermes"  # the server_label of the tools of this server


class AlreadyAdmitted(Exception):
    """Another process has admitted the message."""


async def admit_due() -> bool:
    """Admit the oldest waiting message of each chat; False when none waits."""
    rows = await database.read(_due)
    for row in rows:
        await _admit(row)
    return bool(rows)


def _due() -> list[InboxMessage]:
    """A message that has to wait for its next attempt holds the later ones of its chat."""
    is_earlier = Q(sent_at__lt=OuterRef("sent_at"))
    is_earlier |= Q(sent_at=OuterRef("sent_at"), pk__lt=OuterRef("pk"))
    waiting = InboxMessage.objects.filter(chat_id=OuterRef("chat_id"), closed_at__isnull=True)
    first = InboxMessage.objects.due().filter(~Exists(waiting.filter(is_earlier)))
    enabled = first.filter(platform__in=list(adapters()))
    return list(enabled.select_related("chat")[:ADMITTED_AT_ONCE])


async def _admit(row: InboxMessage) -> None:
    try:
        admission = await database.read(read_admission, row)
        await admit(admission)
    except AlreadyAdmitted:
        logger.debug("%s: another process has admitted it.", row)
    except StorageUnavailable:
        raise
    except ApiError as refusal:
        await database.write_with_retry(partial(_give_up, row, refusal.message))
    except Exception as error:
        logger.exception("A message of %s could not be admitted.", row.platform)
        await database.write_with_retry(partial(_postpone, row, type(error).__name__))


def read_admission(row: InboxMessage) -> Admission:
    """The request is checked as one of the API, so that every view can show it."""
    config = adapters()[row.platform].config
    owner = owner_of(config)
    model = config.profile or default_model()
    body: dict[str, Any] = {"input": row.text or " ", "model": model}
    body["tools"] = tools_of(config, model)
    session_id = session_id_of(row.chat)
    created = read_create(body, Principal(owner), session_id)

    def bind(response_id: str) -> None:
        """In the transaction of the admission: the turn and the note of it are stored together."""
        if not InboxMessage.objects.admit(row.pk, response_id):
            raise AlreadyAdmitted(row.message_id)
        session = Session.objects.opened(owner.pk, session_id, row.platform)
        PlatformChat.objects.filter(pk=row.chat_id).update(session=session)

    return replace(
        created.admission,
        kind=Kind.PLATFORM,
        requested_by=f"platform {row.platform}",
        before_storing=bind,
    )


def owner_of(config: PlatformConfig) -> User:
    if not config.owner:
        return root_owner()
    owner = User.objects.filter(username=config.owner, is_active=True).first()
    if owner is None:
        raise InvalidRequest(f"{config.name}: there is no active user {config.owner!r}.")
    return owner


def session_id_of(chat: PlatformChat) -> str:
    """Printable ASCII without slashes, as the ids of all sessions."""
    return f"{chat.platform}:{quote(chat.chat_id, safe='@+:,;=')}"


def tools_of(config: PlatformConfig, model: str) -> list[dict[str, Any]]:
    """As entries of a request; the profile may have fewer. Without a toolset: no terminal."""
    entries: list[dict[str, Any]] = []
    named = config.toolset
    if named is None:
        known: set[str] = import_string(settings.HERMES_TOOL_NAMES)(model, None)
        tools = sorted(known - {TERMINAL})
    else:
        tools = [name for name in named if name not in settings.HERMES_TOOL_LABELS]
    if tools:
        entries.append({"type": "mcp", "server_label": OWN_LABEL, "allowed_tools": tools})
    for label in settings.HERMES_TOOL_LABELS:
        if label != OWN_LABEL and (named is None or label in named):
            entries.append({"type": "mcp", "server_label": label})
    return entries


def _postpone(row: InboxMessage, error: str) -> None:
    if row.attempts + 1 >= MAX_ATTEMPTS:
        _give_up(row, error)
    else:
        InboxMessage.objects.postpone(row.pk, error, FIRST_DELAY * 2**row.attempts)


def _give_up(row: InboxMessage, error: str) -> None:
    """The sender gets a notice; an operator can try it again."""
    if InboxMessage.objects.give_up(row.pk, error):
        store_message(row.chat, NOT_ADMITTED, f"inbox:{row.pk}:{row.attempts}")
