"""``POST /v1/responses``: from a JSON object to an admission."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from responses_app.http.principals import Principal
from responses_app.protocol.context_limits import ContextLimits
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests import options
from responses_app.requests.client_options import PLAIN_OPTIONS, ClientOptions
from responses_app.requests.fields import (
    Field,
    boolean,
    choice,
    integer,
    number,
    read_fields,
    short_text,
    text,
    unsupported,
    without_nulls,
)
from responses_app.requests.ignored_items import ignored_in_items
from responses_app.requests.input_items import (
    HISTORY,
    check_compactions,
    conversation_history,
    read_input,
    request_input,
)
from responses_app.requests.items import MAX_ID_CHARS
from responses_app.requests.model_name import model_name, resolve_model
from responses_app.requests.structures import metadata
from responses_app.requests.tool_choice import check_choice, is_hosted_choice, tool_choice
from responses_app.requests.tools import added_tools, hosted_tool_names, tools
from responses_app.services.lifecycle.admission import Admission, location
from responses_app.services.profiles import find_profile

_imported = cache(import_string)
SERVICE_TIERS = ("auto", "default", "flex", "priority", "scale", "fast", "ultrafast")
_passed_on = short_text(MAX_ID_CHARS).described("Passed on to the model.")

# Fields whose value the response object repeats.
ECHOED: dict[str, Field[Any]] = {
    "background": boolean.described("Answers at once; needs store."),
    "instructions": text.described("Inherited along a chain until another text replaces them."),
    "max_output_tokens": integer(1, options.MAX_TOKENS),
    "max_tool_calls": integer(1, options.MAX_TOKENS),
    "metadata": metadata,
    "parallel_tool_calls": boolean,
    "previous_response_id": short_text(MAX_ID_CHARS).described("Goes on from that response."),
    "prompt_cache_key": _passed_on,
    "reasoning": options.reasoning,
    "safety_identifier": _passed_on,
    "service_tier": choice(*SERVICE_TIERS),
    "store": boolean.described("false keeps no content and ends with its client."),
    "temperature": number(0, 2),
    "text": options.text_options,
    "tool_choice": tool_choice,
    "tools": tools,
    "top_logprobs": integer(0, 20),
    "top_p": number(0, 1),
    "truncation": choice("auto", "disabled"),
    "user": _passed_on,
}
# Fields that are checked and acted on, and not repeated.
UNECHOED: dict[str, Field[Any]] = {
    "context_management": options.context_management,
    "conversation": options.conversation,
    HISTORY: conversation_history,
    "include": options.include,
    "prompt": unsupported("Stored prompts are not supported; send input."),
    "stream": boolean.described("Events instead of one body."),
    "stream_options": options.stream_options,
}
# Fields whose reading needs the principal, too.
OTHERS: dict[str, Field[Any]] = {"input": request_input, "model": model_name}
FIELDS = ECHOED | UNECHOED | OTHERS
# The known keys of fields that are objects.
NESTED = {
    "reasoning": {"effort", "generate_summary", "summary"},
    "stream_options": {"include_obfuscation"},
    "text": {"format", "verbosity"},
}


@dataclass(frozen=True)
class CreateRequest:
    admission: Admission
    wants_stream: bool


def read_create(
    body: dict[str, Any],
    principal: Principal,
    session_id: str | None = None,
    chosen: ClientOptions = PLAIN_OPTIONS,
) -> CreateRequest:
    """Check a request before anything is stored; the last two arguments come from headers."""
    given = without_nulls(body)
    echo = read_fields(ECHOED, given)
    other = read_fields(UNECHOED, given)
    if "input" not in given:
        raise InvalidRequest("input is required.", param="input", code="missing_required_parameter")
    items = read_input(given["input"], principal.owner_id)
    past = other.get(HISTORY, [])
    check_compactions(past, principal.owner_id, HISTORY)
    _check_together(given, echo)
    model = resolve_model(given.get("model"), principal)
    check_choice(echo.get("tool_choice"), echo.get("tools"), model, added_tools(past + items))
    profile = find_profile(model)
    tools_mode = chosen.tools_mode(echo.get("tools"), echo.get("tool_choice"), profile)
    ignored = [*_unsent_fields(model, given), *_ignored_fields(given, echo)]
    ignored += ignored_in_items(past, HISTORY) + ignored_in_items(items, "input")
    ignored += _unseen_items(model, principal.owner_id, past, items)
    admission = Admission(
        owner_id=principal.owner_id,
        requested_by=principal.actor,
        authority=principal.authority,
        model=model,
        items=past + items,
        history_items=len(past),
        echo=echo,
        request=without_input(body),
        ignored=tuple(ignored),
        previous_id=echo.get("previous_response_id"),
        conversation=other.get("conversation"),
        session_id=session_id,
        tool_items=chosen.tool_form(echo.get("tools"), profile),
        client_tools=tools_mode,
        may_wait_for_approval=chosen.may_wait(profile),
        limits=context_limits(model, echo.get("tools"), tools_mode),
        is_stored=echo.get("store", True),
        is_background=echo.get("background", False),
    )
    return CreateRequest(admission, other.get("stream", False))


def without_input(body: dict[str, Any]) -> dict[str, Any]:
    """What is stored of the request; the input and the history are stored as items."""
    return {name: value for name, value in body.items() if name not in ("input", HISTORY)}


def context_limits(model: str, requested: list[Any] | None, mode: str) -> ContextLimits:
    """Only the gateway knows its prompt, its tools and the window of the model."""
    limits_of = _imported(settings.HERMES_CONTEXT_LIMITS)
    limits: ContextLimits = limits_of(model, requested, mode)
    return limits


def _check_together(given: dict[str, Any], echo: dict[str, Any]) -> None:
    """Cross-field validation."""
    if echo.get("background") and not echo.get("store", True):
        raise InvalidRequest(
            "background needs store: nothing else keeps the result for you.", param="background"
        )
    if "conversation" in given and "previous_response_id" in given:
        raise InvalidRequest(
            "Send conversation or previous_response_id, not both.", param="previous_response_id"
        )
    if "conversation" in given and given.get(HISTORY):
        raise InvalidRequest(
            f"A conversation has a history of its own: send it or {HISTORY}, not both.",
            param=HISTORY,
        )


def _is_included(name: str) -> bool:
    """Only some upstreams encrypt their reasoning, and the built-in model has no probabilities."""
    is_upstream = settings.HERMES_PROVIDER != "builtin"
    if name == "reasoning.encrypted_content":
        return is_upstream and settings.HERMES_API_MODE == "codex_responses"
    if name == options.LOGPROBS:
        return is_upstream
    return name == "message.input_image.image_url"


def _unseen_items(model: str, owner_id: int, past: list[Item], new: list[Item]) -> list[str]:
    """The items that no model gets; only the gateway knows which."""
    items = past + new
    find_unseen = _imported(settings.HERMES_UNSEEN_ITEMS)
    unseen: set[int] = find_unseen(model, owner_id, items)
    names: list[str] = []
    for index in sorted(unseen):
        names.append(f"{location(index, len(past))} ({items[index]['type']})")
    return names


def _unsent_fields(model: str, given: dict[str, Any]) -> tuple[str, ...]:
    """The unknown fields that no model gets."""
    unknown = given.keys() - FIELDS.keys()
    if not unknown:
        return ()
    unsent: set[str] = _imported(settings.HERMES_UNSENT_FIELDS)(model, unknown)
    return tuple(sorted(unsent))


def _ignored_fields(given: dict[str, Any], echo: dict[str, Any]) -> list[str]:
    """The names of everything in known fields that nothing acts on."""
    ignored: list[str] = []
    for name, known in NESTED.items():
        unknown = sorted(given.get(name, {}).keys() - known)
        ignored += [f"{name}.{key}" for key in unknown]
    for index, entry in enumerate(given.get("context_management", [])):
        unknown = sorted(entry.keys() - {"type", "compact_threshold"})
        ignored += [f"context_management[{index}].{key}" for key in unknown]
    if given.get("stream_options", {}).get("include_obfuscation"):
        ignored.append("stream_options.include_obfuscation")
    if echo.get("top_logprobs") and not _is_included(options.LOGPROBS):
        ignored.append("top_logprobs")
    for index, name in enumerate(given.get("include", [])):
        if not _is_included(name):
            ignored.append(f"include[{index}] ({name})")
    ignored += hosted_tool_names(echo.get("tools", []), "tools")
    if is_hosted_choice(echo.get("tool_choice")):
        ignored.append(f"tool_choice ({echo['tool_choice']['type']})")
    return ignored
