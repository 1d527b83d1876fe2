"""Chains of thousands of ended turns, stored with a few bulk inserts."""

import json
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from responses_app.models import Conversation, ConversationItem, InputItem, Response, Session
from responses_app.protocol.ids import item_id, new_response_id
from responses_app.protocol.items import Item
from responses_app.protocol.status import OnDisconnect, Status
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.services.conversations import ConversationHistory
from responses_app.services.history.chain import ChainHistory
from responses_app.services.history.context import count_context
from responses_app.services.history.resent_history import EMPTY, hash_after

BATCH_ROWS = 1000


@dataclass(frozen=True)
class Chain:
    owner_id: int
    session: Session
    ids: list[str]
    items: list[Item]  # all that was written in it, oldest first
    conversation: Conversation | None = None


def message(role: str, text: str) -> Item:
    kind = "input_text" if role == "user" else "output_text"
    return {
        "type": "message",
        "role": role,
        "status": "completed",
        "content": [{"type": kind, "text": text}],
    }


def store_chain(name: str, turns: int, *, is_conversation: bool = False, **fields: Any) -> Chain:
    """A session in which each turn continues the one before it."""
    owner, _ = get_user_model().objects.get_or_create(username="owner")
    waits = bool(fields.get("waits_for_turn", True))
    session = Session.objects.create(
        owner=owner, public_id=name, source="responses", turn_count=turns, has_server_history=waits
    )
    chain = Chain(owner.pk, session, [new_response_id() for _ in range(turns)], [])
    rows: list[Response] = []
    for response_id in chain.ids:
        rows.append(_turn(chain, response_id, rows[-1] if rows else None, fields))
    Response.objects.bulk_create(rows, BATCH_ROWS)
    asked = [item for item in chain.items if item["role"] == "user"]
    InputItem.objects.bulk_create(
        [
            InputItem(response_id=response_id, position=0, item=item)
            for response_id, item in zip(chain.ids, asked, strict=True)
        ],
        BATCH_ROWS,
    )
    if not is_conversation:
        return chain
    return _as_conversation(chain)


def _turn(chain: Chain, response_id: str, previous: Response | None, fields: dict[str, Any]) -> Response:
    number = len(chain.items) // 2 + 1
    name = chain.session.public_id
    asked = message("user", f"{name} question {number:05}")
    answer = message("assistant", f"{name} answer {number:05}")
    asked["id"] = item_id(response_id, "message", 0, is_input=True)
    answer["id"] = item_id(response_id, "message", 0)
    chain.items.extend((asked, answer))
    before = previous or Response(id="", context_hash=EMPTY, context_tokens=0)
    assert before.context_tokens is not None
    context_hash = hash_after(before.context_hash, [asked, answer])
    row = Response(
        id=response_id,
        owner_id=chain.owner_id,
        session=chain.session,
        turn=number,
        previous=previous,
        status=Status.COMPLETED,
        model="hermes-agent",
        output=[answer],
        context_hash=context_hash,
        chat_context_hash=context_hash,
        chain_root=before.chain_root or response_id,
        chain_depth=number - 1,
        context_tokens=before.context_tokens + estimate_tokens([asked, answer], None, []),
        waits_for_turn=True,
        is_log_merged=True,
        finished_at=timezone.now(),
        on_disconnect=OnDisconnect.CONTINUE,
    )
    for field, value in fields.items():
        setattr(row, field, value)
    return row


def _as_conversation(chain: Chain) -> Chain:
    tokens = estimate_tokens(chain.items, None, [])
    conversation = Conversation.objects.create(owner_id=chain.owner_id, session=chain.session, context_tokens=tokens)
    Response.objects.filter(session=chain.session).update(conversation=conversation)
    ConversationItem.objects.bulk_create(
        [
            ConversationItem(
                conversation=conversation,
                position=position,
                item_id=item["id"],
                response_id=chain.ids[position // 2],
            )
            for position, item in enumerate(chain.items)
        ],
        BATCH_ROWS,
    )
    return Chain(chain.owner_id, chain.session, chain.ids, chain.items, conversation)


def analyze() -> None:
    """PostgreSQL plans by its statistics; a server that runs for a while has them."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def print_running_values() -> None:
    """Of each response and conversation: what its row holds, and what a walk over its history finds."""
    counts: list[list[int | None]] = []
    for row in Response.objects.exclude(kind="compaction").filter(is_stored=True):
        counts.append([row.context_tokens, count_context(row.owner_id, ChainHistory(row.pk))])
    for conversation in Conversation.objects.all():
        history = ConversationHistory(conversation.pk)
        counts.append([conversation.context_tokens, count_context(conversation.owner_id, history)])
    fields = ("pk", "chain_root", "chain_depth", "instructions_at")
    chains = list(Response.objects.order_by("created_at").values_list(*fields))
    led = list(Session.objects.order_by("pk").values_list("has_server_history", flat=True))
    print(json.dumps({"counts": counts, "chains": chains, "led": led}))
