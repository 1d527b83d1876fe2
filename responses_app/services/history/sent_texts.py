"""What goes to the model with the items of a request: its instructions, its tools, and notes."""

from responses_app.models import Session
from responses_app.protocol.context_limits import Notes
from responses_app.protocol.token_estimate import estimate_tokens, prompt_tokens
from responses_app.services.history.chain_values import inherited_instructions
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.notes import notes_in


def notes_of_turn(admission: Admission, session: Session | None) -> dict[str, list[str]]:
    """The notes that the turn begins with; the session may be still to begin."""
    if not admission.is_stored:
        return {}
    session_id = None
    if session is not None:
        session_id = session.pk
    return notes_in(admission.owner_id, session_id, admission.session_key or "")


def tokens_beside_items(
    admission: Admission, session: Session | None, previous_id: str | None, notes: Notes
) -> int:
    """As they are estimated, without the server's own prompt and tools.

    ``previous_id`` is the turn whose instructions the request inherits.
    """
    instructions = admission.echo.get("instructions")
    if instructions is None and previous_id is not None:
        instructions = inherited_instructions(previous_id)
    tokens = estimate_tokens([], instructions, admission.echo.get("tools") or [])
    if session is not None:
        tokens += prompt_tokens(session.instructions)
    return tokens + admission.limits.notes_tokens(notes)
