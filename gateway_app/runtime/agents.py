"""Which agent answers: a profile's words, its tools and its workspace."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.utils.module_loading import import_string

from gateway_app.agent.context import OWN_LABEL
from gateway_app.agent.model_call import wire_name
from gateway_app.agent.tools import Tool
from gateway_app.config.models import Model
from gateway_app.config.profiles import models_of
from gateway_app.runtime.mcp import mcp_tools
from responses_app.agent_profiles import AgentProfile
from responses_app.requests.options import CLIENT_TOOLS
from responses_app.services.profiles import DEFAULT, default_model, find_profile

TASK = "default"  # every conversation of an owner and profile works in the same folder


@dataclass(frozen=True)
class Agent:
    profile: AgentProfile | None

    @property
    def instructions(self) -> str:
        return self.profile.instructions if self.profile is not None else ""

    @property
    def context_window(self) -> int:
        """In tokens; 0 means unknown."""
        return (self.profile and self.profile.context_window) or settings.HERMES_CONTEXT_LENGTH

    def models(self) -> tuple[Model, ...]:
        """The model that answers, then those that take over where it fails."""
        models: tuple[Model, ...] = settings.HERMES_MODELS
        return (
            models
            if self.profile is None
            else models_of(self.profile, models, tuple(settings.HERMES_PROVIDERS))
        )

    def workspace(self, owner_id: int) -> Path:
        """The same for every name the agent goes by."""
        home: Path = settings.HERMES_HOME
        name = DEFAULT if self.profile is None else self.profile.name
        name = default_model() if name == DEFAULT else name
        folder = quote(name, safe="").replace(".", "%2E")  # a profile may be called `..`
        return home / "workspaces" / str(owner_id) / folder / TASK

    def tools(self, asked: list[dict[str, Any]] | None) -> tuple[Tool, ...]:
        """Those the server runs: all of the profile's, or what a request asks for by name of a server."""
        own = [tool for tool in available_tools().values() if self._has(tool)]
        if asked is None:
            return tuple(own)
        taken = {wire_name(tool["name"]) for tool in asked if tool["type"] in CLIENT_TOOLS}
        wishes = [tool for tool in asked if tool["type"] == "mcp"]
        free = [tool for tool in own if wire_name(tool.name) not in taken]
        wished = [(tool, [wish for wish in wishes if _is_asked(tool, wish)]) for tool in free]
        return tuple(_with_consent(tool, given) for tool, given in wished if given)

    def _has(self, tool: Tool) -> bool:
        names = self.profile.toolset if self.profile is not None else ()
        return not names or tool.name in names or tool.server_label in names


def agent_of(model: str) -> Agent:
    return Agent(find_profile(model))


def tool_names(model: str, asked: list[dict[str, Any]] | None) -> set[str]:
    return {tool.name for tool in agent_of(model).tools(asked)}


def available_tools() -> dict[str, Tool]:
    return {**_fixed_tools(), **{tool.name: tool for tool in mcp_tools()}}


@cache
def _fixed_tools() -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for maker in settings.HERMES_TOOL_MAKERS:
        found |= import_string(maker)(settings.HERMES_TERMINAL, settings.HERMES_TERMINAL_LIMITS)
    return found


def _with_consent(tool: Tool, wishes: list[dict[str, Any]]) -> Tool:
    """A request may ask to be asked; it can't make a tool ask less."""
    for wish in wishes:
        rule = wish.get("require_approval")
        named = (rule.get("always") or {}).get("tool_names") or () if isinstance(rule, dict) else ()
        if (
            rule == "always"
            or tool.name in named
            or tool.name.removeprefix(f"{tool.server_label}.") in named
        ):
            return _asked_first(tool)
    return tool


def _asked_first(tool: Tool) -> Tool:
    """A tool that asks by itself keeps its approver: a request can't decide in the operator's place."""
    own = tool.asks_approval
    if own is None:
        return replace(tool, asks_approval=_request_reason, approver="client")

    def reason(arguments: dict[str, Any]) -> str:
        return own(arguments) or _request_reason(arguments)

    return replace(tool, asks_approval=reason)


def _request_reason(arguments: dict[str, Any]) -> str:
    return "The request wants every call to be allowed first."


def _is_asked(tool: Tool, wish: dict[str, Any]) -> bool:
    label, allowed = wish.get("server_label"), wish.get("allowed_tools")
    if isinstance(allowed, dict):
        allowed = allowed.get("tool_names")
    short = tool.name.removeprefix(f"{tool.server_label}.")
    is_allowed = allowed is None or tool.name in allowed or short in allowed
    return is_allowed and label in (OWN_LABEL, tool.server_label)
