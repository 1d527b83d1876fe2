"""The agent of a profile: its instructions, its models, its tools and its workspace."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.utils.module_loading import import_string

from gateway_app.agent.approval_items import OWN_LABEL
from gateway_app.agent.budget import Correction
from gateway_app.agent.core_prompt import core_prompt
from gateway_app.agent.model_call import wire_name
from gateway_app.agent.tools import Tool
from gateway_app.config.models import Model
from gateway_app.config.presets.facts import ReasoningReturn
from gateway_app.config.presets.registry import PRESETS
from gateway_app.config.profiles import models_of
from gateway_app.runtime.mcp import mcp_tools
from gateway_app.runtime.windows import Window, WindowSource, windows
from responses_app.agent_profiles import MERGE, NO_CORE_PROMPT, REPLACE, AgentProfile
from responses_app.protocol.sent_reasoning import SentReasoning
from responses_app.requests.tools import CLIENT_TOOLS, is_upstreams
from responses_app.services.profiles import DEFAULT, default_model, find_profile
from responses_app.services.workspaces import workspaces_of

RequestTool = dict[str, Any]  # an entry of the request's `tools`

_SENT_REASONING = {
    ReasoningReturn.NEVER: SentReasoning.NONE,
    ReasoningReturn.OPTIONAL: SentReasoning.LOOP,
    ReasoningReturn.REQUIRED: SentReasoning.ALL,
}

# By name: most servers do not offer it, and its HTTP client takes memory.
WEB_FETCH_MAKER = "gateway_app.tools.web_fetch.make_web_fetch"
TASK = "default"  # every conversation of an owner and profile works in the same folder


@dataclass(frozen=True)
class Agent:
    profile: AgentProfile | None

    @property
    def instructions(self) -> str:
        if self.profile is None:
            return ""
        return self.profile.instructions

    def core_prompt(self, day: date, tools: Sequence[Tool]) -> str:
        """The text before the instructions; ``tools`` are those that the server offers."""
        replaced = ""
        if self.profile is not None:
            replaced = self.profile.core_prompt
        if replaced.lower() == NO_CORE_PROMPT:
            return ""
        if replaced or not settings.HERMES_CORE_PROMPT:
            return replaced
        return core_prompt(day, tuple(tool.name for tool in tools))

    def prompt_of_today(self) -> str:
        """The prompt of a request that sends neither instructions nor tools, for operators."""
        core = self.core_prompt(datetime.now(UTC).date(), self.tools(None))
        return "\n\n".join(filter(None, (core, self.instructions)))

    def window(self, *, may_ask: bool = True) -> Window:
        """Of the model that answers first; its server may be asked, in the background."""
        if self.profile is not None and self.profile.context_window:
            return Window(self.profile.context_window, WindowSource.PROFILE)
        if settings.HERMES_CONTEXT_LENGTH:
            return Window(settings.HERMES_CONTEXT_LENGTH, WindowSource.SETTING)
        return windows.of_model(self.models()[0], may_ask=may_ask)

    def correction(self) -> Correction:
        """How the upstream of that model counts."""
        return windows.correction(self.models()[0])

    def sent_reasoning(self) -> SentReasoning:
        """What that upstream gets back of the model's reasoning."""
        model = self.models()[0]
        if model["api_mode"] == "codex_responses":
            return SentReasoning.ENCRYPTED
        preset = PRESETS.get(model["provider"])
        if preset is None:  # the built-in model, which counts the words of the conversation
            return SentReasoning.NONE
        return _SENT_REASONING[preset.reasoning_return]

    def takes_files(self) -> bool:
        """Does that upstream take PDF files? The built-in model gets all as it is."""
        model = self.models()[0]
        preset = PRESETS.get(model["provider"])
        return preset is None or bool(model["options"].get("files", preset.takes_files))

    def max_tokens(self) -> int | None:
        """Of an answer of that model, where the request does not limit it."""
        limit: int | None = self.models()[0]["options"].get("max_tokens")
        return limit

    @property
    def compact_share(self) -> float:
        """Of the window: a longer conversation is compacted; 0 means never."""
        if self.profile is not None and self.profile.compact_share is not None:
            return self.profile.compact_share
        share: float = settings.HERMES_COMPACT_SHARE
        return share

    @property
    def max_iterations(self) -> int:
        if self.profile is not None and self.profile.max_iterations:
            return self.profile.max_iterations
        limit: int = settings.HERMES_MAX_ITERATIONS
        return limit

    def models(self) -> tuple[Model, ...]:
        """The model that answers, then those that take over where it fails."""
        models: tuple[Model, ...] = settings.HERMES_MODELS
        if self.profile is None:
            return models
        return models_of(self.profile, models, tuple(settings.HERMES_PROVIDERS))

    def workspace(self, owner_id: int) -> Path:
        """The same for every name the agent goes by."""
        if self.profile is None or self.profile.name == DEFAULT:
            name = default_model()
        else:
            name = self.profile.name
        folder = quote(name, safe="").replace(".", "%2E")  # a profile may be called `..`
        return workspaces_of(owner_id) / folder / TASK

    def tools(self, requested: list[RequestTool] | None, mode: str = REPLACE) -> tuple[Tool, ...]:
        """Those the server runs: all of the profile's, or those of the MCP entries of a request.

        A request whose mode is ``merge`` has both. A name that both have is the client's.
        """
        own = [tool for tool in available_tools().values() if self._has(tool)]
        if requested is None:
            return tuple(own)
        taken = {wire_name(tool["name"]) for tool in client_tools(requested)}
        mcp_entries = [entry for entry in requested if entry["type"] == "mcp"]
        found = []
        for tool in own:
            if wire_name(tool.name) in taken:
                continue
            entries = [entry for entry in mcp_entries if _names_tool(entry, tool)]
            if any(_requires_approval(entry, tool) for entry in entries):
                found.append(_with_approval(tool))
            elif entries or mode == MERGE:
                found.append(tool)
        return tuple(found)

    def server_labels(self, requested: list[RequestTool] | None, mode: str = REPLACE) -> set[str]:
        """The MCP servers whose tools a request may have, whether they are connected or not."""
        labels = set()
        for server in settings.HERMES_MCP_SERVERS:
            if self._has_server(server.label):
                labels.add(server.label)
        if requested is None or mode == MERGE:
            return labels
        named = {entry.get("server_label") for entry in requested if entry["type"] == "mcp"}
        if OWN_LABEL in named:
            return labels
        return labels & named

    def _has_server(self, label: str) -> bool:
        if self.profile is None or self.profile.toolset is None:
            return True
        return any(name.partition(".")[0] == label for name in self.profile.toolset)

    def _has(self, tool: Tool) -> bool:
        if self.profile is None or self.profile.toolset is None:
            return True
        return tool.name in self.profile.toolset or tool.server_label in self.profile.toolset


def agent_of(model: str) -> Agent:
    return Agent(find_profile(model))


def tool_names(model: str, requested: list[RequestTool] | None) -> set[str]:
    return {tool.name for tool in agent_of(model).tools(requested)}


def available_tools() -> dict[str, Tool]:
    tools = dict(_fixed_tools())
    for tool in mcp_tools():
        tools[tool.name] = tool
    return tools


@cache
def _fixed_tools() -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for maker in settings.HERMES_TOOL_MAKERS:
        found |= import_string(maker)(settings.HERMES_TERMINAL, settings.HERMES_TERMINAL_LIMITS)
    if settings.HERMES_WEB_FETCH:
        web_fetch: Tool = import_string(WEB_FETCH_MAKER)(settings.HERMES_WEB_FETCH)
        found[web_fetch.name] = web_fetch
    return found


# -- the `tools` of a request -----------------------------------------------------------
def client_tools(requested: list[RequestTool] | None) -> tuple[RequestTool, ...]:
    """Those the client runs."""
    return tuple(tool for tool in requested or () if tool["type"] in CLIENT_TOOLS)


def hosted_tools(requested: list[RequestTool] | None) -> tuple[RequestTool, ...]:
    """Those only an upstream may have."""
    return tuple(tool for tool in requested or () if is_upstreams(tool))


def _names_tool(entry: RequestTool, tool: Tool) -> bool:
    """Does this MCP entry ask for the tool?"""
    if entry.get("server_label") not in (OWN_LABEL, tool.server_label):
        return False
    allowed = entry.get("allowed_tools")
    if isinstance(allowed, dict):
        allowed = allowed.get("tool_names")
    return allowed is None or _is_listed(tool, allowed)


def _requires_approval(entry: RequestTool, tool: Tool) -> bool:
    rule = entry.get("require_approval")
    if isinstance(rule, dict):
        always = rule.get("always") or {}
        return _is_listed(tool, always.get("tool_names") or ())
    return bool(rule == "always")


def _is_listed(tool: Tool, names: Collection[str]) -> bool:
    """With or without its server's label in front."""
    return tool.name in names or tool.name.removeprefix(f"{tool.server_label}.") in names


def _with_approval(tool: Tool) -> Tool:
    """A request may require an approval, and can't make a tool require less.

    A tool that asks by itself keeps its approver: a request can't decide in the operator's place.
    """
    own_reason = tool.asks_approval
    if own_reason is None:
        return replace(tool, asks_approval=_reason_of_request, approver="client")

    def reason(arguments: dict[str, Any]) -> str:
        return own_reason(arguments) or _reason_of_request(arguments)

    return replace(tool, asks_approval=reason)


def _reason_of_request(arguments: dict[str, Any]) -> str:
    return "The request wants every call to be allowed first."
