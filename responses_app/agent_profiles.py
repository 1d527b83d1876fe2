"""A named agent, whether it is a row of the database or an entry of config.yaml."""

from dataclasses import dataclass, field
from typing import Any

NO_CORE_PROMPT = "none"  # as the core_prompt of a profile
NO_FALLBACKS = "none"  # as its fallback_models
MCP_CALL = "mcp_call"
FUNCTION_CALL = "function_call"
AUTO = "auto"  # the form that the client reads
TOOL_ITEM_FORMS = (AUTO, FUNCTION_CALL, MCP_CALL)
REPLACE = "replace"  # a request with tools has exactly those
MERGE = "merge"  # it also has those of the profile
CLIENT_TOOL_MODES = (REPLACE, MERGE)


@dataclass(frozen=True)
class AgentProfile:
    name: str
    location: str  # where it is defined, for messages about its settings
    instructions: str = ""
    core_prompt: str = ""  # instead of the server's; empty means the server's
    toolset: tuple[str, ...] | None = None  # None means all tools of the server
    tool_items: str = ""  # empty means that of the server
    client_tools: str = REPLACE
    approval_wait: bool = False  # calls wait for an approval also where a client can't be asked
    # Settings that replace those of the server's first model.
    upstream: dict[str, Any] = field(default_factory=dict)
    fallback_models: list[Any] | str | None = None  # None means those of the server
    context_window: int = 0  # in tokens; 0 means that of the server
    compact_share: float | None = None  # None means that of the server
    max_iterations: int = 0  # 0 means that of the server
