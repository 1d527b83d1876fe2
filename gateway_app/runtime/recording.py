"""From what the agent says to the output of the response."""

from collections.abc import Callable
from typing import Any

from gateway_app.agent import types
from responses_app.output import OutputBuilder


def record(builder: OutputBuilder, event: types.AgentEvent) -> None:
    _STEPS[type(event)](builder, event)


_STEPS: dict[type, Callable[[OutputBuilder, Any], None]] = {
    types.MessageStarted: lambda out, event: out.message_started(event.phase),
    types.TextDelta: lambda out, event: out.text(event.text),
    types.ReasoningDelta: lambda out, event: out.reasoning(event.text),
    types.ReasoningSealed: lambda out, event: out.seal_reasoning(event.encrypted_content),
    types.RefusalDelta: lambda out, event: out.refusal(event.text),
    types.OpaqueItem: lambda out, event: out.opaque(event.item),
    types.CallStarted: lambda out, event: out.call_started(event.call_id, event.name),
    types.CallArguments: lambda out, event: out.call_arguments(event.call_id, event.delta),
    types.CallFinished: lambda out, event: out.call_finished(event.call_id, is_cut=event.is_cut),
    types.ToolFinished: lambda out, event: out.tool_output(event.call_id, event.output),
}
