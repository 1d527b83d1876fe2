"""``POST /v1/responses``: from a JSON object to an admission."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from responses_app.http.principals import Principal
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests import options
from responses_app.requests.fields import (
    Reader,
    boolean,
    choice,
    integer,
    metadata,
    number,
    short_text,
    text,
)
from responses_app.requests.items import MAX_ID_CHARS, read_input
from responses_app.requests.model_name import resolve_model
from responses_app.requests.tools import is_own, read_form, server_tool_names
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.profiles import find_profile

LOGPROBS = "message.output_text.logprobs"

# Fields whose value the response object repeats.
ECHOED: dict[str, Reader] = {
    "background": boolean,
    "instructions": text,
    "max_output_tokens": integer(1, options.MAX_TOKENS),
    "max_tool_calls": integer(1, options.MAX_TOKENS),
    "metadata": metadata,
    "parallel_tool_calls": boolean,
    "previous_response_id": short_text(MAX_ID_CHARS),
    "prompt_cache_key": short_text(MAX_ID_CHARS),
    "reasoning": options.reasoning,
    "safety_identifier": short_text(MAX_ID_CHARS),
    "service_tier": choice("auto", "default", "flex", "priority", "scale"),
    "store": boolean,
    "temperature": number(0, 2),
    "text": options.text_options,
    "tool_choice": options.tool_choice,
    "tools": options.tools,
    "top_logprobs": integer(0, 20),
    "top_p": number(0, 1),
    "truncation": choice("auto", "disabled"),
    "user": short_text(MAX_ID_CHARS),
}
# Fields that are checked and acted on, and not repeated.
UNECHOED: dict[str, Reader] = {
    "context_management": options.context_management,
    "conversation": options.conversation,
    "include": options.include,
    "stream": boolean,
    "stream_options": options.stream_options,
}
OTHERS = {"input", "model"}
UNSUPPORTED = {"prompt"}
# What is known inside of fields that are objects.
NESTED = {
    "reasoning": ("effort", "generate_summary", "summary"),
    "stream_options": ("include_obfuscation",),
    "text": ("format", "verbosity"),
}


@dataclass(frozen=True)
class CreateRequest:
    admission: Admission
    wants_stream: bool


def read_create(
    body: dict[str, Any],
    principal: Principal,
    session_id: str | None = None,
    tool_form: str | None = None,
) -> CreateRequest:
    """Check a request before anything is stored; null means the same as absent.

    The last two come from headers.
    """
    given = {name: value for name, value in body.items() if value is not None}
    echo = {name: read(given[name], name) for name, read in ECHOED.items() if name in given}
    other = {name: read(given[name], name) for name, read in UNECHOED.items() if name in given}
    if "input" not in given:
        raise InvalidRequest("input is required.", param="input", code="missing_required_parameter")
    items = read_input(given["input"], principal.owner_id)
    _check_together(given, echo)
    model = resolve_model(given.get("model"), principal)
    _check_choice(echo.get("tool_choice"), echo.get("tools"), model)
    profile = find_profile(model)
    admission = Admission(
        owner_id=principal.owner_id,
        requested_by=principal.actor,
        model=model,
        items=items,
        echo=echo,
        request={name: value for name, value in body.items() if name != "input"},
        ignored=(*_ignored(given, echo), *_unseen(model, principal.owner_id, items)),
        previous_id=echo.get("previous_response_id"),
        conversation=other.get("conversation"),
        session_id=session_id,
        tool_items=read_form(tool_form, echo.get("tools"), profile),
        context_window=(profile and profile.context_window) or settings.HERMES_CONTEXT_LENGTH,
        is_stored=echo.get("store", True),
        is_background=echo.get("background", False),
    )
    return CreateRequest(admission, other.get("stream", False))


def _check_together(given: dict[str, Any], echo: dict[str, Any]) -> None:
    """What is right by itself and wrong in company."""
    if echo.get("background") and not echo.get("store", True):
        raise InvalidRequest(
            "background needs store: nothing else keeps the result for you.", param="background"
        )
    if "conversation" in given and "previous_response_id" in given:
        raise InvalidRequest(
            "Send conversation or previous_response_id, not both.", param="previous_response_id"
        )
    if "prompt" in given:
        raise InvalidRequest(
            "Stored prompts are not supported; send input.",
            param="prompt",
            code="unsupported_value",
        )


def _check_choice(chosen: Any, tools: list[dict[str, Any]] | None, model: str) -> None:
    """What it forces must be on offer: by the client, or by the server."""
    if chosen in (None, "auto", "none"):
        return
    names = {*options.client_tool_names(tools or []), *server_tool_names(model, tools)}
    is_anything_else = any(
        not is_own(tool) and tool["type"] not in options.CLIENT_TOOLS for tool in tools or ()
    )
    if chosen == "required" and not names and not is_anything_else:
        raise InvalidRequest(
            "tool_choice is 'required', but there is no tool to call.", param="tool_choice"
        )
    for name in options.named_tools(chosen):
        if name not in names:
            raise InvalidRequest(
                f"tool_choice names {name!r}, which is not in tools.", param="tool_choice"
            )


def _is_included(wish: str) -> bool:
    """Only upstreams that speak the Responses API seal their reasoning; the built-in model is never unsure."""
    is_upstream = settings.HERMES_PROVIDER != "builtin"
    if wish == "reasoning.encrypted_content":
        return is_upstream and settings.HERMES_API_MODE == "codex_responses"
    return wish == "message.input_image.image_url" or (wish == LOGPROBS and is_upstream)


def _unseen(model: str, owner_id: int, items: list[Item]) -> list[str]:
    """The items that no model is shown; only the gateway knows."""
    unseen: set[int] = import_string(settings.HERMES_UNSEEN_ITEMS)(model, owner_id, items)
    return [f"input[{index}] ({items[index]['type']})" for index in sorted(unseen)]


def _ignored(given: dict[str, Any], echo: dict[str, Any]) -> tuple[str, ...]:
    """Everything here that nothing acts on, by name."""
    fields = sorted(given.keys() - ECHOED.keys() - UNECHOED.keys() - OTHERS)
    fields += [
        f"{name}.{key}"
        for name, known in NESTED.items()
        for key in sorted(given.get(name, {}))
        if key not in known
    ]
    fields += [
        f"context_management[{n}].{key}"
        for n, entry in enumerate(given.get("context_management", []))
        for key in sorted(entry.keys() - {"type", "compact_threshold"})
    ]
    if (given.get("stream_options") or {}).get("include_obfuscation"):
        fields.append("stream_options.include_obfuscation")
    if echo.get("top_logprobs") and not _is_included(LOGPROBS):
        fields.append("top_logprobs")
    wishes = [
        f"include[{n}] ({wish})"
        for n, wish in enumerate(given.get("include", []))
        if not _is_included(wish)
    ]
    tools = [
        f"tools[{n}] ({tool['type']})"
        for n, tool in enumerate(echo.get("tools", []))
        if tool["type"] not in options.CLIENT_TOOLS and not is_own(tool)
    ]
    return (*fields, *wishes, *tools)
