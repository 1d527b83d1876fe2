"""What a turn is asked to do: its request, its new input, and the history before it."""

from dataclasses import dataclass
from typing import Any

from gateway_app.agent.events import ModelFailed
from gateway_app.agent.model_call import MODEL_PARAMETERS
from responses_app.eventlog import AdmittedRequest
from responses_app.models import Kind, Response, Session
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.protocol.status import Status
from responses_app.requests.create import FIELDS
from responses_app.services.history.call_answers import CallsInHistory, PreviousTurn, check_answers
from responses_app.services.history.chain import input_of
from responses_app.services.history.chain_values import inherited_instructions
from responses_app.services.history.context import History, history_of
from responses_app.services.lifecycle.claim import FreshTurn

CHAT_FIELDS = "chat"  # the key of a stored chat request's fields that the Responses API lacks


@dataclass(frozen=True)
class TurnRequest:
    """The history is only named here: it is read as far as the model is sent it."""

    kind: str
    fields: dict[str, Any]
    ignored: tuple[str, ...]
    new_input: list[Item]
    history: History

    def model_parameters(self) -> dict[str, Any]:
        parameters = {}
        for name in MODEL_PARAMETERS:
            if self.fields.get(name) is not None:
                parameters[name] = self.fields[name]
        return parameters

    def upstream_fields(self) -> dict[str, Any]:
        """Fields of a request in the form of Responses that only an upstream may understand."""
        if self.kind == Kind.CHAT:
            return {}
        return {name: self.fields[name] for name in self.fields.keys() - FIELDS.keys()}

    def chat_fields(self) -> dict[str, Any]:
        """The same of a chat request, and the fields that only the chat API has."""
        if self.kind != Kind.CHAT:
            return {}
        found: dict[str, Any] = self.fields.get(CHAT_FIELDS, {})
        return found

    @property
    def is_compaction(self) -> bool:
        return self.kind == Kind.COMPACTION


def read_request(row: Response, admitted: AdmittedRequest | None) -> TurnRequest:
    _check_conversation(row)
    if admitted is not None:
        fields = admitted.request
        ignored = admitted.ignored
        new_input = admitted.items
    else:
        fields = row.request
        ignored = tuple(row.ignored)
        new_input = input_of(row.pk)
    _check_parent(row, new_input)
    history = history_of(row.conversation_id, row.previous_id)
    return TurnRequest(row.kind, fields, ignored, new_input, history)


def read_instructions(
    row: Response,
    request: TurnRequest,
    fresh: FreshTurn | None,
    core_prompt: str,
    profile_instructions: str,
    facts: str,
) -> str | None:
    """All texts for the model; a request without its own inherits along its chain."""
    requested = request.fields.get("instructions")
    if requested is None and row.conversation_id is None and not row.is_history_resent:
        requested = inherited_instructions(row.previous_id)
    if fresh is not None:
        of_session = fresh.session_instructions
    else:
        of_session = Session.objects.values_list("instructions", flat=True).get(pk=row.session_id)
    parts = filter(None, (core_prompt, profile_instructions, of_session, requested, facts))
    return "\n\n".join(parts) or None


def _check_conversation(row: Response) -> None:
    if row.kind == Kind.COMPACTION:
        return  # it takes no conversation, and names the field as ignored
    if row.conversation_id is None and row.request.get("conversation") is not None:
        raise ModelFailed(
            "The conversation was deleted while this response waited for its turn.",
            "invalid_prompt",
        )


def _check_parent(row: Response, new_input: list[Item]) -> None:
    """A turn that waited was admitted before its parent had ended, perhaps with open calls."""
    if row.status != Status.QUEUED or row.previous_id is None:
        return
    previous = Response.objects.get(pk=row.previous_id)
    try:
        parent = PreviousTurn(previous, row.conversation_id, CallsInHistory.answer)
        check_answers(parent, new_input)
    except InvalidRequest as error:
        raise ModelFailed(error.message, "invalid_prompt") from None
