"""``additional_tools`` items: tools that a client adds in the middle of a conversation."""

from collections.abc import Sequence

from gateway_app.agent.model_call import wire_name
from gateway_app.agent.tools import Tool
from gateway_app.runtime.agents import Agent, RequestTool, client_tools, hosted_tools
from responses_app.agent_profiles import REPLACE
from responses_app.protocol.items import ADDITIONAL_TOOLS, Item


class OfferedTools:
    """All tools of a turn: those of its request, and those that its conversation added.

    Few upstreams know the item, and all know tools: the item itself is sent to none.
    """

    def __init__(
        self,
        agent: Agent,
        requested: list[RequestTool] | None,
        items: Sequence[Item],
        mode: str = REPLACE,
    ) -> None:
        self._agent = agent
        self._mode = mode  # whether the request's tools replace those of the agent
        self._requested = requested
        self._added: list[RequestTool] = []
        self.other_items: list[Item] = []
        for item in items:
            if item["type"] == ADDITIONAL_TOOLS:
                self._added += item["tools"]
            else:
                self.other_items.append(item)

    def of_server(self) -> tuple[Tool, ...]:
        if not self._added:
            return self._agent.tools(self._requested, self._mode)
        if self._requested is not None:
            return self._agent.tools(self._requested + self._added, self._mode)
        taken = {wire_name(tool["name"]) for tool in self.of_client()}
        own = self._agent.tools(None)
        return tuple(tool for tool in own if wire_name(tool.name) not in taken)

    def of_client(self) -> tuple[RequestTool, ...]:
        """Of two tools with one name, the one that was added later."""
        by_name: dict[str, RequestTool] = {}
        for tool in (*client_tools(self._requested), *client_tools(self._added)):
            by_name[tool["name"]] = tool
        return tuple(by_name.values())

    def of_upstream(self) -> tuple[RequestTool, ...]:
        return hosted_tools(self._requested) + hosted_tools(self._added)
