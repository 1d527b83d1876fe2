"""Headers with which a client chooses how its tools and approvals work."""

from dataclasses import dataclass

from django.conf import settings

from responses_app.agent_profiles import (
    AUTO,
    CLIENT_TOOL_MODES,
    MCP_CALL,
    REPLACE,
    TOOL_ITEM_FORMS,
    AgentProfile,
)
from responses_app.requests.clients import PLAIN_HTTP, Client, Header, identify
from responses_app.requests.fields import choice
from responses_app.requests.tools import Tool, is_own

FORM_HEADER = "X-Hermes-Tool-Items"
CLIENT_TOOLS_HEADER = "X-Hermes-Client-Tools"
APPROVAL_HEADER = "X-Hermes-Approval-Wait"
tool_form = choice(*TOOL_ITEM_FORMS).described("The item type of the server's own tool calls.")
client_tools_mode = choice(*CLIENT_TOOL_MODES).described(
    "Whether your tools replace those of the agent, or are merged with them."
)
approval_wait = choice("true", "false").described(
    "Calls that need an approval wait for it, also in chats."
)


@dataclass(frozen=True)
class ClientOptions:
    """The client, and what it chooses; None where the profile decides."""

    client: Client = PLAIN_HTTP
    tool_items: str | None = None
    client_tools: str | None = None
    waits_for_approval: bool | None = None

    def tool_form(self, tools: list[Tool] | None, profile: AgentProfile | None) -> str:
        """The item type of the server's calls: from the header, the profile or the settings."""
        form: str = settings.HERMES_TOOL_ITEMS
        if profile is not None and profile.tool_items:
            form = profile.tool_items
        if self.tool_items is not None:
            form = self.tool_items
        if form != AUTO:
            return form
        if any(is_own(tool) for tool in tools or ()):
            return MCP_CALL
        return self.client.tool_items

    def tools_mode(
        self, tools: list[Tool] | None, tool_choice: object, profile: AgentProfile | None
    ) -> str:
        """A client that forces a call, or wants no tools, gets what it asks for and no more."""
        mode = REPLACE
        if profile is not None:
            mode = profile.client_tools
        if self.client_tools is not None:
            mode = self.client_tools
        is_forced = tool_choice not in (None, "auto", "none")
        if not tools or is_forced:
            return REPLACE
        return mode

    def may_wait(self, profile: AgentProfile | None) -> bool:
        if self.waits_for_approval is not None:
            return self.waits_for_approval
        return profile is not None and profile.approval_wait


def read_client_options(header: Header) -> ClientOptions:
    form = header(FORM_HEADER)
    if form is not None:
        tool_form(form, FORM_HEADER)
    mode = header(CLIENT_TOOLS_HEADER)
    if mode is not None:
        client_tools_mode(mode, CLIENT_TOOLS_HEADER)
    wait = header(APPROVAL_HEADER)
    waits: bool | None = None
    if wait is not None:
        waits = approval_wait(wait, APPROVAL_HEADER) == "true"
    return ClientOptions(identify(header), form, mode, waits)


PLAIN_OPTIONS = ClientOptions()
