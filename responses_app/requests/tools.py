"""Tools that the server runs: how a request asks for them, and how it wants to see their calls."""

from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from responses_app.agent_profiles import TOOL_ITEM_FORMS, AgentProfile
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests.fields import an_object, choice, optional, text, texts

FORM_HEADER = "X-Hermes-Tool-Items"


def is_own(tool: dict[str, Any]) -> bool:
    """Is it one of this server's, or of an MCP server it is connected to?"""
    return tool["type"] == "mcp" and tool.get("server_label") in settings.HERMES_TOOL_LABELS


def is_own_call(item: Item) -> bool:
    """A call of such a tool: a model is shown it as the function call that it made."""
    return item["type"] == "mcp_call" and item["server_label"] in settings.HERMES_TOOL_LABELS


def server_tool_names(model: str, tools: list[dict[str, Any]] | None) -> set[str]:
    """What the server itself offers for such a request; only the gateway knows."""
    names: set[str] = import_string(settings.HERMES_TOOL_NAMES)(model, tools)
    return names


def read_mcp(tool: dict[str, Any], name: str) -> None:
    """Somebody else's server needs an address; without one it must be a server we know."""
    label = text(tool.get("server_label"), f"{name}.server_label")
    url = optional(text)(tool.get("server_url"), f"{name}.server_url")
    connector = optional(text)(tool.get("connector_id"), f"{name}.connector_id")
    if label not in settings.HERMES_TOOL_LABELS and not (url or connector):
        known = ", ".join(settings.HERMES_TOOL_LABELS)
        raise InvalidRequest(
            f"{name}.server_label is {label!r}; this server knows {known}.",
            param=f"{name}.server_label",
        )
    _read_consent(tool.get("require_approval"), f"{name}.require_approval")
    allowed = tool.get("allowed_tools")
    if isinstance(allowed, dict):
        if is_own(tool) and allowed.get("read_only") is not None:
            raise InvalidRequest(
                f"{name}.allowed_tools.read_only is not supported; name the tools in tool_names.",
                param=f"{name}.allowed_tools.read_only",
                code="unsupported_value",
            )
        optional(texts)(allowed.get("tool_names"), f"{name}.allowed_tools.tool_names")
    else:
        optional(texts)(allowed, f"{name}.allowed_tools")


def _read_consent(rule: Any, name: str) -> None:
    if not isinstance(rule, dict):
        optional(choice("always", "never"))(rule, name)
        return
    for key in ("always", "never"):
        chosen = optional(an_object)(rule.get(key), f"{name}.{key}") or {}
        optional(texts)(chosen.get("tool_names"), f"{name}.{key}.tool_names")


def read_form(
    header: str | None, tools: list[dict[str, Any]] | None, profile: AgentProfile | None
) -> str:
    """How calls of the server's tools are shown: as the header says, the profile is set or the request suggests."""
    if header is not None:
        return str(choice(*TOOL_ITEM_FORMS)(header, FORM_HEADER))
    if profile is not None and profile.tool_items:
        return profile.tool_items
    return "mcp_call" if any(is_own(tool) for tool in tools or ()) else "function_call"
