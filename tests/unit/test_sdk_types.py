"""Every literal and every kind of item that OpenAI's SDK knows in a request is accepted, and none is lost."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from openai.types.chat import completion_create_params as chat_params
from openai.types.conversations import conversation_create_params as conversation_params
from openai.types.responses import (
    ResponseError,
    ResponseInputItemParam,
    input_token_count_params,
    response_compact_params,
    response_create_params,
)
from typing_extensions import get_type_hints

from gateway_app.api.chat.requests import read_chat
from gateway_app.providers.openai.responses.request import WITH_STATUS
from responses_app.http.principals import Principal
from responses_app.protocol.errors import ApiError
from responses_app.protocol.failures import ERROR_CODES
from responses_app.protocol.items import CompactedContext
from responses_app.requests.compact import read_compact
from responses_app.requests.conversations import CREATE_FIELDS
from responses_app.requests.create import read_create
from responses_app.requests.fields import read_fields
from responses_app.services.history.compaction import seal_compaction
from tests.support.sdk_types import Sample, Walk

Body = dict[str, Any]
CREATE = response_create_params.ResponseCreateParamsNonStreaming
OWNER = Principal(User(pk=1))
QUESTION = {"role": "user", "content": "x"}
ADDRESS = "https://x.example/"
# What this server does not have. A response that lacks it would not be what the client asked for.
REFUSED = {
    "prompt": "stored prompts",
    "audio": "speech",
    "modalities": "speech",
    "functions": "the form of calls before tools",
    "function_call": "the form of calls before tools",
}
REFUSED_KINDS = {
    "input_file": "files",
    "file": "files",
    "input_audio": "speech",
    "function": "the message of the form of calls before tools",
}
OWN_FIELDS = ("status",)  # of an item: the server sets it by itself


@pytest.fixture
def walk() -> Walk:
    texts = {
        "compact_threshold": 1000,
        "encrypted_content": seal_compaction(1, CompactedContext([])),
        "image_url": "data:image/png;base64,AA==",
        "server_label": "elsewhere",
        "type": "compaction",
        "url": ADDRESS,
    }
    return Walk(texts)


def read_responses(body: Body) -> tuple[Any, tuple[str, ...]]:
    admission = read_create({"input": "x"} | body, OWNER).admission
    return [admission.items, admission.request], admission.ignored


def read_compaction(body: Body) -> tuple[Any, tuple[str, ...]]:
    admission = read_compact({"model": None, "input": "x"} | body, OWNER)
    return [admission.items, admission.request], admission.ignored


def read_completion(body: Body) -> tuple[Any, tuple[str, ...]]:
    admission = read_chat({"messages": [QUESTION]} | body, OWNER).admission
    return [admission.items, admission.request], admission.ignored


def read_conversation(body: Body) -> tuple[Any, tuple[str, ...]]:
    return read_fields(CREATE_FIELDS, body), ()


REQUESTS: dict[str, tuple[Any, Callable[[Body], tuple[Any, tuple[str, ...]]]]] = {
    "responses": (CREATE, read_responses),
    "input tokens": (input_token_count_params.InputTokenCountParams, read_responses),
    "compact": (response_compact_params.ResponseCompactParams, read_compaction),
    "chat completions": (chat_params.CompletionCreateParamsNonStreaming, read_completion),
    "conversations": (conversation_params.ConversationCreateParams, read_conversation),
}


def completed(name: str, value: Any) -> Body:
    """A body with the field, and with what the types do not say that it needs."""
    if name == "tool_choice" and isinstance(value, dict):
        return {name: with_named_tools(value), "tools": [tool_of(value)]}
    if name == "tool_choice":
        return {name: value, "tools": [{"type": "function", "name": "x"}]}
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            complete(entry)
    return {name: value}


def complete(entry: Body) -> None:
    match entry:
        case {"type": "mcp"}:
            entry.setdefault("server_url", ADDRESS)
        case {"type": "function_call_output"}:
            entry.setdefault("call_id", "x")
        case {"type": "additional_tools", "tools": tools}:
            for tool in tools:
                complete(tool)
        case {"role": "assistant"} if "tool_calls" not in entry:
            entry.setdefault("content", "x")


def with_named_tools(choice: Body) -> Body:
    named = [{"type": "function", "name": "x"}]
    if choice["type"] != "allowed_tools":
        return choice
    if "allowed_tools" in choice:
        return choice | {"allowed_tools": choice["allowed_tools"] | {"tools": named}}
    return choice | {"tools": named}


def tool_of(choice: Body) -> Body:
    match choice["type"]:
        case "mcp":
            return {"type": "mcp", "server_label": "elsewhere", "server_url": ADDRESS}
        case "function" | "custom":
            return {"type": choice["type"], "name": "x"}
        case "allowed_tools":
            return {"type": "function", "name": "x"}
        case other:
            return {"type": other}


def is_refused(sample: Sample, body: Body) -> bool:
    """Whether this server refuses it by intention."""
    if sample.path[0] in REFUSED:
        return True
    kinds = json.dumps(body)
    return any(f'"type": "{kind}"' in kinds or f'"role": "{kind}"' in kinds for kind in REFUSED_KINDS)


def is_of_file(sample: Sample, error: ApiError) -> bool:
    """An image without an address is a file."""
    return error.code == "unsupported_content_type"


def is_lost(sample: Sample, kept: Any, ignored: tuple[str, ...]) -> bool:
    if sample.literal is None or sample.field in OWN_FIELDS:
        return False
    if any(sample.field in name for name in ignored):
        return False
    return json.dumps(sample.literal) not in json.dumps(kept)


# In chat, calls and outputs are messages: they are kept as items of these kinds.
TRANSLATED = {"function": "function_call", "custom": "custom_tool_call", "tool": "function_call_output"}


@pytest.mark.django_db
@pytest.mark.parametrize("request_kind", REQUESTS)
def test_all_that_the_sdk_knows_in_a_request_is_accepted_and_kept(request_kind: str, walk: Walk) -> None:
    params, read = REQUESTS[request_kind]
    walked_before = set(get_type_hints(CREATE)) if read is read_responses and params is not CREATE else set()
    wrong: list[str] = []
    walked: set[tuple[str, str]] = set()
    for sample in walk.samples(params):
        name = str(sample.path[0])
        if name not in sample.value or name in walked_before or name == "model":  # models are the server's own
            continue
        body = completed(name, sample.value[name])
        sent = (json.dumps(body), str(sample.literal))
        if sent in walked:
            continue
        walked.add(sent)
        try:
            kept, ignored = read(body)
        except ApiError as error:
            if not is_refused(sample, body) and not is_of_file(sample, error):
                wrong.append(f"{sample} is refused: {error.message}")
            continue
        if is_lost(sample, kept, ignored) and TRANSLATED.get(sample.literal, "?") not in json.dumps(kept):
            wrong.append(f"{sample} is lost")
    assert wrong == []
    assert walked


def test_the_codes_of_failed_responses_are_those_of_the_sdk(walk: Walk) -> None:
    codes = {sample.value for sample in walk.samples(ResponseError.model_fields["code"].annotation)}
    assert codes == ERROR_CODES


def test_items_keep_the_status_that_upstreams_require(walk: Walk) -> None:
    smallest = [sample.value for sample in walk.samples(ResponseInputItemParam) if sample.path == ("type",)]
    assert {item["type"] for item in smallest if "status" in item and item["type"] != "message"} == WITH_STATUS
