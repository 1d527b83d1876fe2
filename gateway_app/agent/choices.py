"""Which tools a request's choice leaves."""

from gateway_app.agent.context import OWN_LABEL
from gateway_app.agent.events import ModelCall


def allowed_names(call: ModelCall) -> set[str] | None:
    """The tools that an ``allowed_tools`` choice names, servers' tools by their server too; None without one."""
    if not isinstance(call.tool_choice, dict) or call.tool_choice.get("type") != "allowed_tools":
        return None
    allowed: set[str] = set()
    for entry in call.tool_choice["tools"]:
        if entry["type"] != "mcp":
            allowed.add(str(entry.get("name")))
            continue
        served = [
            tool
            for tool in call.tools
            if entry.get("server_label") in (OWN_LABEL, tool.server_label)
        ]
        short = {tool.name: tool.name.removeprefix(f"{tool.server_label}.") for tool in served}
        allowed |= {name for name in short if entry.get("name") in (None, name, short[name])}
    return allowed
