"""Items: their fields, which output answers which call, and what marks a compaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Required, TypedDict, cast

Annotation = dict[str, Any]
TokenLogprob = dict[str, Any]


class ContentPart(TypedDict, total=False):
    """A part of a message, of a tool's output, of reasoning or of its summary."""

    type: Required[str]
    text: str
    refusal: str
    annotations: list[Annotation]
    logprobs: list[TokenLogprob]
    image_url: str | None
    detail: str
    prompt_cache_breakpoint: dict[str, Any]
    filename: str
    file_data: str  # base64, or a data URL with it
    file_url: str


Content = str | list[ContentPart]


class ProviderState(TypedDict):
    """What only one provider understands, with the identity of that provider."""

    provider: str
    state: dict[str, Any]  # empty: only the origin of the item is known


class Item(TypedDict, total=False):
    """The fields that the server reads and writes; clients and upstreams may send others."""

    type: Required[str]
    id: str
    status: str
    role: str
    phase: str
    content: Content
    summary: list[ContentPart]
    encrypted_content: str
    call_id: str
    name: str
    arguments: str
    input: str
    output: Content | None
    server_label: str
    tools: list[dict[str, Any]]  # of an ADDITIONAL_TOOLS item
    approval_request_id: str | None
    approve: bool
    reason: str | None
    error: Any  # of an mcp_call: OpenAI's object, or a plain text of another server
    compacted: str  # see MARK
    is_note: bool  # a message of the server to the model; never stored
    provider_state: ProviderState  # see STATE


# -- tool calls -------------------------------------------------------------------------
OUTPUT_OF = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
CALLS = frozenset(OUTPUT_OF)
OUTPUTS = frozenset(OUTPUT_OF.values())
# Where each kind of call keeps what the model wrote.
ARGUMENTS_OF = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}

# -- approvals --------------------------------------------------------------------------
APPROVAL_REQUEST = "mcp_approval_request"
APPROVAL_RESPONSE = "mcp_approval_response"


def request_id_of(item: Item) -> str:
    """The id of a request for approval, in the request or in an item that refers to it.

    A request that a client sent back has an id of its own.
    """
    return item.get("approval_request_id") or item.get("id") or ""


# -- items of the client that are neither messages nor outputs ---------------------------
ADDITIONAL_TOOLS = "additional_tools"
COMPACTION_TRIGGER = "compaction_trigger"
CONFIGURATION_UPDATE = "configuration_update"
CLIENT_SETTINGS = frozenset({ADDITIONAL_TOOLS, COMPACTION_TRIGGER, CONFIGURATION_UPDATE})

# -- compactions ------------------------------------------------------------------------
COMPACTION = "compaction"
# The key, on an item that came out of a compaction, of what it is there. No model sees it.
MARK = "compacted"
SUMMARY, KEPT = "summary", "kept"

# -- provider state ---------------------------------------------------------------------
# The key, on an item that a provider is about to get, of its state. No client and no log has it.
STATE = "provider_state"


@dataclass(frozen=True)
class CompactedContext:
    """The items that a model sees instead of a compaction item; none of an unfinished one."""

    items: Sequence[Item] = ()
    replaces_all: bool = False  # nothing before the compaction item is visible to the model


# -- texts ------------------------------------------------------------------------------
def content_text(content: Content | None) -> str:
    """The text of a content; refusals, images and files have none."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or ())


def content_text_with_refusals(content: Content | None) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("refusal") or "" for part in content or ())


def item_text(item: Item) -> str:
    """The text of a message or of a tool's output; other items have a shape of their own."""
    kind = item.get("type", "message")
    if kind == "message":
        return content_text(item.get("content"))
    if kind in OUTPUTS:
        return content_text(item.get("output"))
    return ""


def call_arguments(call: Item) -> str:
    """What the model wrote in a call."""
    if call["type"] == "custom_tool_call":
        return call.get("input") or ""
    return call.get("arguments") or ""


# -- which items these are --------------------------------------------------------------
def all_call_ids(items: Iterable[Item]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] in CALLS}


def call_ids(items: Iterable[Item]) -> set[str]:
    """Of the calls that can be answered: not of those in which the model was cut off."""
    found: set[str] = set()
    for item in items:
        if item["type"] in CALLS and item.get("status") != "incomplete":
            found.add(item["call_id"])
    return found


def output_ids(items: Iterable[Item]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] in OUTPUTS}


def is_from_model(item: Item) -> bool:
    is_clients = item["type"] in OUTPUTS or item["type"] in CLIENT_SETTINGS
    return not is_clients and item.get("role", "assistant") == "assistant"


def dangling_reasoning(items: Sequence[Item]) -> set[int]:
    """The indexes of reasoning that no message and no call follows: upstreams refuse it."""
    found: set[int] = set()
    leads_on = False
    for index in reversed(range(len(items))):
        if items[index]["type"] != "reasoning":
            leads_on = is_from_model(items[index])
        elif not leads_on:
            found.add(index)
    return found


def without_fields(item: Item, *names: str) -> Item:
    kept = {name: value for name, value in item.items() if name not in names}
    return cast(Item, kept)
