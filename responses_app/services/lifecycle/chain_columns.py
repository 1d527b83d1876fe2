"""The columns of a response that a later turn of its chain goes on from."""

from typing import Any

from responses_app.models import Kind, Response
from responses_app.protocol.items import Item
from responses_app.services.history.chain_values import ContextSize, position_in_chain
from responses_app.services.history.placement import Placement
from responses_app.services.history.resent_history import chat_form, hash_after
from responses_app.services.lifecycle.admission import Admission

CARRIED = ("context_hash", "chat_context_hash", "context_tokens", "compaction_at")


def chain_columns_at_admission(
    response_id: str, admission: Admission, placement: Placement
) -> dict[str, Any]:
    """No chain contains a compaction or an unstored response."""
    if admission.kind == Kind.COMPACTION or not admission.is_stored:
        return {"chain_root": response_id}
    previous = placement.previous
    before = ContextSize()
    if previous is not None:
        before = ContextSize(previous.context_tokens, previous.compaction_at)
    columns = position_in_chain(
        response_id,
        previous,
        has_instructions=admission.request.get("instructions") is not None,
        brings_history=placement.repeated is not None,
    )
    return columns | before.after(admission.owner_id, response_id, placement.items).columns()


def chain_columns_at_end(
    row: Response, new_input: list[Item], output: list[Item]
) -> dict[str, Any]:
    """No turn continues a compaction."""
    if row.kind == Kind.COMPACTION:
        return {}
    carried = ContextSize()
    context_hash = chat_context_hash = ""
    before: Response | None = None
    if row.previous_id is not None:
        before = Response.objects.only(*CARRIED).filter(pk=row.previous_id).first()
    if before is not None:
        carried = ContextSize(before.context_tokens, before.compaction_at)
        context_hash = before.context_hash
        chat_context_hash = before.chat_context_hash
    columns = carried.after(row.owner_id, row.pk, new_input + output).columns()
    if row.conversation_id is not None:
        return columns  # its context is the conversation's items: no client resends a chain
    if row.previous_id is not None and not context_hash:
        return columns  # the turn before has no hash, so neither has this
    columns["context_hash"] = hash_after(context_hash, new_input + output)
    columns["chat_context_hash"] = hash_after(chat_context_hash, new_input + chat_form(output))
    return columns
