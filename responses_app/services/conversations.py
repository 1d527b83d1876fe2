"""Conversations: items in order, a session of their own, and an optional name.

The functions that write run in the caller's transaction.
"""

import secrets
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, QuerySet

from responses_app.models import Conversation, ConversationItem, InputItem, Response, Session
from responses_app.protocol.errors import ConversationNotFound, InvalidRequest, NameTaken
from responses_app.protocol.ids import ITEM_PREFIXES
from responses_app.protocol.item_states import with_states
from responses_app.protocol.items import COMPACTION, Item
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.services.history.compaction import expand

ID_PREFIX = "conv_"
MAX_NAME_CHARS = 200
SOURCE = "conversations"
PAGE_ITEMS = (32, 128, 512)  # most readers need few items; the others need few queries
COMPACTION_ID = ITEM_PREFIXES[COMPACTION] + "_"


def find_conversation(owner_id: int, reference: str, param: str = "conversation") -> Conversation:
    """By id or name. Another owner's conversation does not exist."""
    found = _owned(owner_id, reference).select_related("session").first()
    if found is None:
        raise ConversationNotFound(reference, param)
    return found


def open_conversation(owner_id: int, reference: str) -> Conversation:
    """By id or name; a new name creates a conversation.

    The row stays locked, so that it is not deleted before its next turn is stored.
    """
    locked = _owned(owner_id, reference).select_for_update(of=("self",))
    found = locked.select_related("session").first()
    if found is not None:
        return found
    if reference.startswith(ID_PREFIX):
        raise ConversationNotFound(reference)
    check_name(reference, "conversation")
    try:
        return create_conversation(owner_id, name=reference)
    except NameTaken:  # another process has just created it
        return find_conversation(owner_id, reference)


def create_conversation(
    owner_id: int,
    *,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    items: Iterable[Item] = (),
) -> Conversation:
    try:
        with transaction.atomic():
            conversation = Conversation.objects.create(
                owner_id=owner_id,
                name=name,
                metadata=metadata or {},
                session=Session.objects.opened(owner_id, None, SOURCE),
                context_tokens=0,
            )
    except IntegrityError:
        if name is None:
            raise
        raise NameTaken(name) from None
    add_items(conversation.pk, items)
    return conversation


def update_metadata(conversation_id: str, metadata: dict[str, str]) -> None:
    if not Conversation.objects.filter(pk=conversation_id).update(metadata=metadata):
        raise ConversationNotFound(conversation_id)


def delete_conversation(conversation_id: str) -> None:
    """Its items go with it; the responses and the session stay."""
    for conversation in Conversation.objects.select_for_update().filter(pk=conversation_id):
        conversation.delete()


def check_name(name: str, param: str) -> None:
    """A name can be part of a path, and can't be mistaken for an id."""
    is_safe = name.isprintable() and not set(name) & set("/\\") and name not in (".", "..")
    if not 0 < len(name) <= MAX_NAME_CHARS or not is_safe or name.startswith(ID_PREFIX):
        raise InvalidRequest(
            f"{param} must have 1 to {MAX_NAME_CHARS} printable characters without slashes, "
            f"and a name must not begin with {ID_PREFIX}.",
            param=param,
        )


# -- items ------------------------------------------------------------------------------
def new_item_id(item_type: str) -> str:
    """Of an item that belongs to no response: the id holds no location."""
    prefix = ITEM_PREFIXES.get(item_type, "item")
    return f"{prefix}_{secrets.token_hex(16)}"


def add_items(conversation_id: str, items: Iterable[Item]) -> list[Item]:
    """Append items of the conversation's own; returns them with their ids."""
    own: list[Item] = []
    for item in items:
        named = item.copy()
        named["id"] = new_item_id(item["type"])
        own.append(named)
    conversation = _locked(conversation_id)
    if conversation is None:
        raise ConversationNotFound(conversation_id)
    _append(conversation, own, [{"item_id": item["id"], "item": item} for item in own])
    return own


def append_response(
    conversation_id: str, response_id: str, input_items: list[Item], output: list[Item]
) -> None:
    """Append pointers to the items of a response; an item that is there already stays where it is.

    Does nothing when the conversation was deleted while the response ran.
    """
    conversation = _locked(conversation_id)
    if conversation is None:
        return
    items = {item["id"]: item for item in input_items + output}
    present = ConversationItem.objects.filter(conversation=conversation, item_id__in=list(items))
    for item_id in present.values_list("item_id", flat=True):
        del items[item_id]
    rows = [{"item_id": item_id, "response_id": response_id} for item_id in items]
    _append(conversation, list(items.values()), rows)


def delete_item(conversation_id: str, item_id: str) -> bool:
    deleted, _ = ConversationItem.objects.filter(
        conversation_id=conversation_id, item_id=item_id
    ).delete()
    if deleted:
        Conversation.objects.filter(pk=conversation_id).note_removal()
    return deleted > 0


def readable_items(conversation_id: str) -> QuerySet[ConversationItem]:
    """Rows whose content exists: the conversation's own, and those of undeleted responses."""
    return ConversationItem.objects.filter(
        conversation_id=conversation_id, response__deleted_at__isnull=True
    )


def resolved(rows: list[ConversationItem], *, for_model: bool = False) -> list[Item]:
    """The items of rows, with two queries for all that belong to responses.

    For a model, outputs carry the state of their provider.
    """
    response_ids = {row.response_id for row in rows if row.response_id is not None}
    of_responses = _items_of_responses(response_ids, for_model)
    items: list[Item] = []
    for row in rows:
        item = row.item
        if row.response_id is not None:
            item = of_responses.get((row.response_id, row.item_id))
        if item is not None:
            items.append(item)
    return items


def _items_of_responses(response_ids: set[str], for_model: bool) -> dict[tuple[str, str], Item]:
    if not response_ids:
        return {}
    found: dict[tuple[str, str], Item] = {}
    rows = Response.objects.filter(pk__in=response_ids)
    for response_id, output, states in rows.values_list("pk", "output", "provider_state"):
        if not for_model:
            states = None
        for item in with_states(output or [], states):
            found[response_id, item["id"]] = item
    inputs = InputItem.objects.filter(response_id__in=response_ids)
    for response_id, item in inputs.values_list("response_id", "item"):
        found[response_id, item["id"]] = item
    return found


def _owned(owner_id: int, reference: str) -> QuerySet[Conversation]:
    owned = Conversation.objects.filter(owner_id=owner_id)
    if not reference.isprintable():  # PostgreSQL refuses to look for a NUL
        return owned.none()
    if reference.startswith(ID_PREFIX):
        return owned.filter(pk=reference)
    return owned.filter(name=reference)


def _locked(conversation_id: str) -> Conversation | None:
    """The lock keeps processes from using the same positions; None when it was deleted."""
    return Conversation.objects.select_for_update().filter(pk=conversation_id).first()


def _append(conversation: Conversation, items: list[Item], rows: list[dict[str, Any]]) -> None:
    first = last_position(conversation.pk) + 1
    ConversationItem.objects.bulk_create(
        ConversationItem(conversation=conversation, position=position, **row)
        for position, row in enumerate(rows, first)
    )
    _count(conversation, items, first)


def _count(conversation: Conversation, items: list[Item], first: int) -> None:
    """Add to the count of tokens; a compaction that replaces all before it restarts the count."""
    expanded = expand(conversation.owner_id, items)
    tokens = estimate_tokens(expanded.items, None, [])
    if expanded.replaces_all:
        conversation.context_tokens = tokens
    elif conversation.context_tokens is not None:
        conversation.context_tokens += tokens
    for position, item in enumerate(items, first):
        if item["type"] == COMPACTION:
            conversation.compaction_position = position
    conversation.save(update_fields=["context_tokens", "compaction_position"])


def last_position(conversation_id: str) -> int:
    """-1 where there is no item."""
    items = ConversationItem.objects.filter(conversation_id=conversation_id)
    last: int | None = items.aggregate(last=Max("position"))["last"]
    if last is None:
        return -1
    return last


class ConversationHistory:
    """The items that a turn of a conversation continues."""

    def __init__(self, conversation_id: str) -> None:
        self._conversation_id = conversation_id
        self._read_from: int | None = None
        self.compaction_position: int | None = None  # of the newest compaction, of what was read

    def back(self) -> Iterator[list[Item]]:
        """The items in pages, newest page first, read only as far as the caller iterates."""
        for size in chain(PAGE_ITEMS, repeat(PAGE_ITEMS[-1])):
            rows = self._page(size)
            if not rows:
                return
            self._read_from = rows[0].position
            self._note_compaction(rows)
            yield resolved(rows, for_model=True)
            if len(rows) < size:
                return

    def _note_compaction(self, rows: list[ConversationItem]) -> None:
        if self.compaction_position is None:
            for row in rows:
                if row.item_id.startswith(COMPACTION_ID):
                    self.compaction_position = row.position

    def compactions_back(self) -> Iterator[Item]:
        """Those before the page that was read last, newest first."""
        rows = self._older().filter(item_id__startswith=COMPACTION_ID)
        known = Conversation.objects.filter(pk=self._conversation_id, context_tokens__isnull=False)
        for position in known.values_list("compaction_position", flat=True):
            if position is None:
                return
            rows = rows.filter(position__lte=position)
        while (row := rows.order_by("-position").first()) is not None:
            yield from resolved([row])
            rows = rows.filter(position__lt=row.position)

    def _page(self, size: int) -> list[ConversationItem]:
        rows = list(self._older().order_by("-position")[:size])
        rows.reverse()
        return rows

    def _older(self) -> QuerySet[ConversationItem]:
        items = readable_items(self._conversation_id)
        if self._read_from is None:
            return items
        return items.filter(position__lt=self._read_from)
