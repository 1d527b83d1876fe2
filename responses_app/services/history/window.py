"""Does a request fit into the context window of its model?"""

from dataclasses import dataclass
from typing import Protocol

from responses_app.models import Conversation, Response, Session
from responses_app.protocol.context_limits import Notes
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.file_tokens import pdf_tokens
from responses_app.protocol.items import Item
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.protocol.truncation import question_of
from responses_app.services.conversations import ConversationHistory, last_position
from responses_app.services.history.chain import ChainHistory
from responses_app.services.history.compaction import expand
from responses_app.services.history.context import count_context
from responses_app.services.history.resent_history import Repeated
from responses_app.services.history.sent_texts import tokens_beside_items
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lifecycle.read_ahead import ReadAhead

SHORTEN_INPUT = "Shorten it, or send truncation: auto to drop the oldest turns."
SHORTEN_QUESTION = "Shorten the last message: it does not fit without the conversation either."
OLDEST_TURNS = "oldest turns (truncation)"  # in X-Hermes-Ignored and on the row


class Continued(Protocol):
    """The history that new items follow."""

    @property
    def session(self) -> Session: ...
    @property
    def items(self) -> list[Item]: ...
    @property
    def previous(self) -> Response | None: ...
    @property
    def conversation(self) -> Conversation | None: ...
    @property
    def repeated(self) -> Repeated | None: ...
    @property
    def skipped(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> Notes | None: ...


def check_window(admission: Admission, placement: Continued, reads: ReadAhead) -> tuple[str, ...]:
    """Refuse a request that can't fit, before it costs anything; the names of what is left out.

    Of a conversation that is truncated or compacted, only the question has to fit.
    """
    newer = expand(admission.owner_id, placement.items)
    beside = _tokens_beside(admission, placement)
    is_truncating = admission.echo.get("truncation") == "auto"
    is_managed = bool(admission.request.get("context_management"))
    if is_truncating or is_managed or admission.limits.is_compacting:
        question = question_of(newer.items)
        _check_fits(admission, beside + _least_tokens(question), SHORTEN_QUESTION)
        if not is_truncating:
            return ()
    before = 0
    if not newer.replaces_all:
        before = _tokens_before(admission.owner_id, placement, reads)
    if not is_truncating:
        _check_fits(admission, beside + before + _least_tokens(newer.items), SHORTEN_INPUT)
        return ()
    estimated = beside + before + estimate_tokens(newer.items, None, [])
    room = admission.limits.room(admission.echo.get("max_output_tokens"))
    if admission.limits.tokens(estimated) <= room:
        return ()
    return (OLDEST_TURNS,)


def _least_tokens(items: list[Item]) -> int:
    """Without PDF files: only the turn, which reads their text, knows how long they are."""
    return estimate_tokens(items, None, []) - pdf_tokens(items)


def _tokens_beside(admission: Admission, placement: Continued) -> int:
    inherits_from = None
    previous = placement.previous
    inherits = placement.conversation is None and placement.repeated is None
    if previous is not None and previous.instructions_at and inherits:
        inherits_from = previous.pk
    return tokens_beside_items(admission, placement.session, inherits_from, placement.notes or {})


def _check_fits(admission: Admission, estimated: int, remedy: str) -> None:
    tokens = admission.limits.least_tokens(estimated)
    window = admission.limits.window
    if tokens > window:
        raise InvalidRequest(
            f"The input has about {tokens} tokens, with the server's own prompt and tools, "
            f"and this model takes {window}. {remedy}",
            param="input",
            code="context_length_exceeded",
        )


def _tokens_before(owner_id: int, placement: Continued, reads: ReadAhead) -> int:
    if placement.conversation is not None:
        return _tokens_of_conversation(placement.conversation, reads)
    previous = placement.previous
    if previous is None:
        return 0
    if previous.context_tokens is not None and not placement.skipped:
        return previous.context_tokens
    counted = reads.get(ChainCount(owner_id, previous.pk, placement.skipped))
    if not placement.skipped and not previous.is_open:
        previous.context_tokens = counted.tokens
        previous.compaction_at = counted.compaction_at
        previous.save(update_fields=["context_tokens", "compaction_at"])
    return counted.tokens


def _tokens_of_conversation(conversation: Conversation, reads: ReadAhead) -> int:
    if conversation.context_tokens is not None:
        return conversation.context_tokens
    count = ConversationCount(
        owner_id=conversation.owner_id,
        conversation_id=conversation.pk,
        removals=conversation.removals,
        last_position=last_position(conversation.pk),
    )
    counted = reads.get(count)
    conversation.context_tokens = counted.tokens
    conversation.compaction_position = counted.compaction_position
    conversation.save(update_fields=["context_tokens", "compaction_position"])
    return counted.tokens


@dataclass(frozen=True)
class CountedChain:
    tokens: int
    compaction_at: str


@dataclass(frozen=True)
class ChainCount:
    """Of a chain whose rows hold no count, or a count that includes deleted turns."""

    owner_id: int
    previous_id: str
    skipped: tuple[str, ...]

    def answer(self) -> CountedChain:
        history = ChainHistory(self.previous_id)
        tokens = count_context(self.owner_id, history)
        return CountedChain(tokens, history.compaction_at)


@dataclass(frozen=True)
class CountedConversation:
    tokens: int
    compaction_position: int | None


@dataclass(frozen=True)
class ConversationCount:
    """Of a conversation from which items were removed, or which was never counted."""

    owner_id: int
    conversation_id: str
    removals: int
    last_position: int

    def answer(self) -> CountedConversation:
        history = ConversationHistory(self.conversation_id)
        tokens = count_context(self.owner_id, history)
        return CountedConversation(tokens, history.compaction_position)
