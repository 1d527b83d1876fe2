"""From what the agent says to the output of the response; text is cleaned on the way."""

from collections.abc import Callable
from typing import Any

from gateway_app.agent import types
from responses_app.events import clean_text
from responses_app.output import OutputBuilder


def record(builder: OutputBuilder, event: types.AgentEvent) -> None:
    _STEPS[type(event)](builder, event)


def clean(value: Any) -> Any:
    """An item of any shape, with clean texts."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(key): clean(inner) for key, inner in value.items()}
    return [clean(inner) for inner in value] if isinstance(value, list) else value


_STEPS: dict[type, Callable[[OutputBuilder, Any], None]] = {
    types.TextDelta: lambda out, event: out.text(clean_text(event.text)),
    types.ReasoningDelta: lambda out, event: out.reasoning(clean_text(event.text)),
    types.ReasoningSealed: lambda out, event: out.seal_reasoning(clean_text(event.encrypted_content)),
    types.RefusalDelta: lambda out, event: out.refusal(clean_text(event.text)),
    types.OpaqueItem: lambda out, event: out.opaque(clean(event.item)),
    types.CallStarted: lambda out, event: out.call_started(clean_text(event.call_id), clean_text(event.name)),
    types.CallArguments: lambda out, event: out.call_arguments(clean_text(event.call_id), clean_text(event.delta)),
    types.CallFinished: lambda out, event: out.call_finished(clean_text(event.call_id)),
    types.ToolFinished: lambda out, event: out.tool_output(clean_text(event.call_id), event.output),
}
