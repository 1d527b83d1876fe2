"""A named agent, whether it is a row of the database or an entry of config.yaml."""

from dataclasses import dataclass, field
from typing import Any

TOOL_ITEM_FORMS = ("function_call", "mcp_call")


@dataclass(frozen=True)
class AgentProfile:
    name: str
    place: str  # how its owner calls it, in complaints about its settings
    instructions: str = ""
    toolset: tuple[str, ...] = ()  # empty means all tools of the server
    tool_items: str = ""  # empty means as the request suggests
    upstream: dict[str, str] = field(
        default_factory=dict
    )  # what of the first model's settings it has its own
    fallback_models: list[Any] | None = None
    context_window: int = 0  # in tokens; 0 means that of the server
