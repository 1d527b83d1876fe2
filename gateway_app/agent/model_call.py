"""One request to a model, and the interface of the providers that send it."""

import hashlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, Protocol, runtime_checkable

from gateway_app.agent.approval_items import OWN_LABEL
from gateway_app.agent.budget import Budget
from gateway_app.agent.cut_message import with_rest
from gateway_app.agent.events import ModelEvent, UpstreamPosition
from gateway_app.agent.text_listener import TextListener
from gateway_app.agent.tools import Tool
from responses_app.protocol.items import Item
from responses_app.protocol.sent_reasoning import request_sizes
from responses_app.protocol.token_estimate import estimate_tokens, prompt_tokens
from responses_app.protocol.truncation import fitted

# Fields of a client's request that are passed on to the model as they are.
MODEL_PARAMETERS = (
    "include",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "temperature",
    "text",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)

ENCRYPTED_REASONING = "reasoning.encrypted_content"  # a value of `include`


MAX_ITERATIONS = 90  # of one turn; each asks the model once

# Models name a tool as their training data did: with a namespace, and Kimi with the call's number.
_NAMESPACED = re.compile(r"(?:functions\.)?(.+?)(?::\d+)?", re.DOTALL)
MAX_WIRE_NAMES = 1_000  # short ones that are kept: each request names all tools
MAX_WIRE_NAME_CHARS = 64  # upstreams refuse a conversation with a longer one
_UNSAFE_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


FileTexts = Callable[[list[Item]], Awaitable[list[Item]]]


class CutAt(StrEnum):
    """Where the answer at the end of a call's items broke off."""

    TEXT = "text"  # in the last message, which is plain text: the model can go on letter by letter
    BEHIND = "behind"  # in something behind that message, or in an answer that has reasoning


@dataclass(frozen=True)
class ResumePoint:
    """An answer that still runs at its upstream, and how much of it the log has."""

    position: UpstreamPosition
    # Type of event -> characters, or events that have none, after the position.
    received: dict[type, int]


@dataclass(frozen=True)
class ModelCall:
    """The request's items are in the shape of OpenAI's Responses API."""

    model: str
    items: list[Item]
    instructions: str | None = None
    core_prompt: str = ""  # with which the instructions begin
    tools: tuple[Tool, ...] = ()  # run by the server
    # Run by the client, as its request describes them.
    client_tools: tuple[dict[str, Any], ...] = ()
    # Of other kinds, for upstreams that know them.
    hosted_tools: tuple[dict[str, Any], ...] = ()
    tool_choice: Any = "auto"
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    max_iterations: int = MAX_ITERATIONS
    # In tokens: a longer conversation is replaced by its summary.
    compact_threshold: int | None = None
    budget: Budget = field(default_factory=Budget)
    # Those of MODEL_PARAMETERS that the client sent.
    parameters: dict[str, Any] = field(default_factory=dict)
    # Fields of the request that only upstreams know: those of the Responses API, or of Chat Completions.
    extras: dict[str, Any] = field(default_factory=dict)
    chat_extras: dict[str, Any] = field(default_factory=dict)
    # Ids of calls that are in no item, or under another id: no other call of the turn may have them.
    used_call_ids: frozenset[str] = frozenset()
    is_retry: bool = False  # an attempt before this one broke: use a new connection
    # The model goes on with the answer at the end of the items; each provider asks in its own way.
    cut_at: CutAt | None = None
    resume: ResumePoint | None = None  # instead of asking again, where the upstream still has it
    # Takes text past the events, where no filter has to see it.
    text_listener: TextListener | None = field(default=None, compare=False, repr=False)
    # Reads the files of items; without it, a summary has their names alone.
    file_texts: FileTexts | None = field(default=None, compare=False, repr=False)
    is_stored: bool = False  # upstreams may store an answer only if the client's response is stored

    def tool_specs(self) -> list[dict[str, Any]]:
        """Every tool but the upstream's own, as the Responses API describes them."""
        return [*[tool.spec for tool in self.tools], *self.client_tools]

    def wire_name(self, name: str) -> str:
        for tool in self.client_tools:
            if tool["name"] == name:
                return name
        return wire_name(name)

    def offered_names(self) -> list[str]:
        """The tools that the model may call, by the names it knows."""
        if self.tool_choice == "none":
            return []
        allowed = self.allowed_tool_names()
        names = []
        for spec in self.tool_specs():
            if allowed is None or spec["name"] in allowed:
                names.append(self.wire_name(spec["name"]))
        return names

    def public_name(self, written: str) -> str:
        """The name of the tool that the model means; a name that no tool has is kept."""
        named = _NAMESPACED.fullmatch(written)
        candidates = [written]
        if named is not None:
            candidates.append(named.group(1))
        names: list[str] = [spec["name"] for spec in self.tool_specs()]
        for candidate in candidates:
            if candidate in names:
                return candidate
            for name in names:
                if wire_name(name) == candidate:
                    return name
        return written

    def allowed_tool_names(self) -> set[str] | None:
        """The tools of ours that an ``allowed_tools`` choice names; None without such a choice.

        An entry of type ``mcp`` names one tool of a server, or all of them; so does an ``mcp`` choice.
        """
        if self.is_choice_of_upstream or not isinstance(self.tool_choice, dict):
            return None
        if self.tool_choice["type"] in ("function", "custom"):
            return None
        allowed: set[str] = set()
        for entry in self.tool_choice.get("tools", [self.tool_choice]):
            if entry["type"] != "mcp":
                allowed.add(str(entry.get("name")))
                continue
            for tool in self.tools:
                short_name = tool.name.removeprefix(f"{tool.server_label}.")
                is_of_server = entry.get("server_label") in (OWN_LABEL, tool.server_label)
                if is_of_server and entry.get("name") in (None, tool.name, short_name):
                    allowed.add(tool.name)
        return allowed

    @property
    def choice_mode(self) -> str:
        """Of a choice that names several tools: may the model call them, or must it?"""
        return str(self.tool_choice.get("mode", "required"))

    @property
    def is_choice_of_upstream(self) -> bool:
        """Does the choice force a tool that only an upstream may have?"""
        if not isinstance(self.tool_choice, dict):
            return False
        kind = self.tool_choice["type"]
        if kind != "mcp":
            return kind not in ("function", "custom", "allowed_tools")
        labels = {OWN_LABEL, *(tool.server_label for tool in self.tools)}
        return self.tool_choice["server_label"] not in labels

    @property
    def wants_logprobs(self) -> bool:
        included = self.parameters.get("include") or ()
        if self.parameters.get("top_logprobs"):
            return True
        return "message.output_text.logprobs" in included

    @property
    def wants_encrypted_reasoning(self) -> bool:
        return ENCRYPTED_REASONING in (self.parameters.get("include") or ())

    @property
    def is_formatted(self) -> bool:
        """Must the answer be one document, which can't be put together from pieces?"""
        text_options = self.parameters.get("text") or {}
        text_format = text_options.get("format") or {}
        return bool(text_format.get("type", "text") != "text")

    def estimate(self) -> int:
        """Of its tokens, as ``token_estimate`` counts."""
        return self._fixed_tokens + self._item_tokens

    def input_tokens(self) -> int:
        """The estimate in the tokens of the upstream."""
        return self.budget.tokens(self.estimate())

    def room(self) -> int:
        """For the items, beside the instructions, the tools and the answer; as they are estimated."""
        return self.budget.room(self._fixed_tokens, self.max_output_tokens)

    def answer_room(self) -> int | None:
        """What the items leave of the window; None if it is not known, or there is nothing left."""
        left = self.budget.window - self.input_tokens() * 21 // 20  # an estimate may be too low
        if not self.budget.window or left <= 0:
            return None
        return left

    def fits(self) -> bool:
        """As far as the window is known; the answer may get less than its part of it."""
        return not self.budget.window or self.input_tokens() <= self.budget.window

    def fitted_items(self) -> list[Item]:
        """The items without the oldest turns and rounds, as many as do not fit."""
        return fitted(self.items, self.room(), self.budget.sent_reasoning)

    async def readable(self, items: list[Item]) -> list[Item]:
        """The items for a summary, in which a file is its text."""
        if self.file_texts is None:
            return items
        return await self.file_texts(items)

    @cached_property
    def _fixed_tokens(self) -> int:
        own = (self.instructions or "").removeprefix(self.core_prompt)
        tokens = prompt_tokens(self.core_prompt) + sum(tool.tokens for tool in self.tools)
        return tokens + estimate_tokens([], own, list(self.client_tools))

    @cached_property
    def _item_tokens(self) -> int:
        return sum(request_sizes(self.items, self.budget.sent_reasoning))

    def followed_by(self, items: list[Item]) -> "ModelCall":
        """The next call of the turn; a choice that forces a call applies to the first one only."""
        choice = self.tool_choice
        if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
            choice = choice | {"mode": "auto"}
        elif choice != "none":
            choice = "auto"
        if self.cut_at is None:
            followed = self.items + items
        else:
            followed = with_rest(self.items, items)
        return replace(self, items=followed, tool_choice=choice, cut_at=None, resume=None)


def wire_name(name: str) -> str:
    """The name of a server's tool without the dot, which most upstreams refuse.

    A tool that the model made up may have any name: in a conversation it must be one they accept.
    """
    if len(name) <= MAX_WIRE_NAME_CHARS:
        return _safe_name(name)
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    shortened = _safe_name(name[: MAX_WIRE_NAME_CHARS - 9])
    return f"{shortened}_{digest}"


@lru_cache(MAX_WIRE_NAMES)
def _safe_name(name: str) -> str:
    """As long as the name."""
    return _UNSAFE_IN_NAMES.sub("_", name.replace(".", "-"))


class Provider(Protocol):
    """A way to reach a model; one file each in ``providers/``."""

    @property
    def identity(self) -> str:
        """Names the server, its protocol and the model; empty if they keep no state in items."""

    def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]: ...


@runtime_checkable
class CancellingProvider(Protocol):
    """A provider whose answers run on at the upstream when the connection is closed."""

    async def cancel(self, position: UpstreamPosition) -> None:
        """Stop that answer, if it is this upstream's; best effort."""
