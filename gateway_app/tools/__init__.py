"""The tools the server can run; a new one is a file here and a line below."""

from gateway_app.agent.types import Tool
from gateway_app.tools import calculate

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (calculate.TOOL,)}
