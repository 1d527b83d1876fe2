"""A named agent, whether it is a row of the database or an entry of config.yaml."""

from dataclasses import dataclass, field
from typing import Any

NO_CORE_PROMPT = "none"  # as the core_prompt of a profile
TOOL_ITEM_FORMS = ("function_call", "mcp_call")


@dataclass(frozen=True)
class AgentProfile:
    name: str
    location: str  # where it is defined, for messages about its settings
    instructions: str = ""
    core_prompt: str = ""  # instead of the server's; empty means the server's
    toolset: tuple[str, ...] = ()  # empty means all tools of the server
    tool_items: str = ""  # empty means what the request asks for
    # Settings that replace those of the server's first model.
    upstream: dict[str, Any] = field(default_factory=dict)
    fallback_models: list[Any] | None = None
    context_window: int = 0  # in tokens; 0 means that of the server
    compact_share: float | None = None  # None means that of the server
    max_iterations: int = 0  # 0 means that of the server
