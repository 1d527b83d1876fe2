"""``POST /v1/chat/completions``: from a JSON object to an admission."""

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.conf import settings

from gateway_app.api.chat.messages import (
    INSTRUCTION_ROLES,
    Fields,
    SentItem,
    instructions_of,
    new_items,
    read_messages,
)
from gateway_app.api.chat.translation import (
    SAME,
    TRANSLATED,
    chat_error,
    chat_names,
    responses_fields,
)
from gateway_app.runtime.turn_request import CHAT_FIELDS
from gateway_app.runtime.visibility import unsent_fields
from responses_app.http.principals import Principal
from responses_app.models import Kind
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.client_options import PLAIN_OPTIONS, ClientOptions
from responses_app.requests.create import CreateRequest, read_create
from responses_app.requests.fields import (
    Field,
    an_object,
    boolean,
    choice,
    integer,
    number,
    read_fields,
    short_text,
    unsupported,
    without_nulls,
    wrong_type,
)
from responses_app.requests.json_schema import any_of, array_of, const
from responses_app.requests.structures import object_of
from responses_app.services.lifecycle.admission import Admission

MAX_STOPS = 4
MAX_STOP_CHARS = 1000
MAX_BIAS = 100
SEEDS = (-(2**63), 2**63 - 1)
DETAIL_HEADER = "X-Hermes-Tool-Detail"
tool_detail = choice("full", "short")
PENALTIES = ("frequency_penalty", "presence_penalty")


@dataclass(frozen=True)
class ChatRequest:
    admission: Admission
    wants_stream: bool
    wants_usage: bool
    given: Fields
    sent: list[SentItem]

    def explained(self, error: InvalidRequest) -> InvalidRequest:
        """An error of the input, with the name of the message that it came in."""
        return chat_error(error, self.given, self.sent)


def read_chat(
    body: Fields,
    principal: Principal,
    session_id: str | None = None,
    chosen: ClientOptions = PLAIN_OPTIONS,
) -> ChatRequest:
    """Check a request before anything is stored; null means the same as absent."""
    given = without_nulls(body)
    own = read_fields(OWN_FIELDS, given)
    if "messages" not in given:
        raise InvalidRequest(
            "messages is required.", param="messages", code="missing_required_parameter"
        )
    messages = read_messages(given["messages"])
    sent = messages
    if session_id is not None:
        sent = new_items(messages)
    fields = responses_fields(given)
    instructions = instructions_of(messages)
    if session_id is not None and instructions is not None:
        fields["instructions"] = instructions
    items = [one.item for one in sent]
    try:
        read = read_create(fields | {"input": items}, principal, session_id, chosen)
    except InvalidRequest as error:
        raise chat_error(error, given, sent) from None
    ignored = _ignored(given, read, sent)
    groups_with: str | None = None
    if session_id is None:
        groups_with = conversation_id(principal.owner_id, messages)
    else:
        ignored += _dropped_history(messages, sent)
    echo = dict(read.admission.echo)
    for name in PENALTIES:
        if name in own:
            echo[name] = own[name]
    admission = replace(
        read.admission,
        kind=Kind.CHAT,
        request=fields | {CHAT_FIELDS: _extras(given, own)},
        echo=echo,
        ignored=tuple(ignored),
        groups_with=groups_with,
        stops_with_client=given.get("store") is not True,
    )
    return ChatRequest(
        admission=admission,
        wants_stream=read.wants_stream,
        wants_usage=bool(own.get("stream_options", {}).get("include_usage")),
        given=given,
        sent=sent,
    )


def conversation_id(owner_id: int, sent: list[SentItem]) -> str:
    """The same for all turns of a conversation: from its owner, instructions and first question."""
    question: Any = None
    before: list[SentItem] = []
    for one in sent:
        if one.role == "user":
            question = one.item["content"]
            break
        before.append(one)
    opening = orjson.dumps([owner_id, instructions_of(before), question])
    digest = hmac.new(settings.SECRET_KEY.encode(), opening, hashlib.sha256).hexdigest()
    return "api-" + digest[:32]


def wants_detail(header: str | None) -> bool:
    return header is not None and tool_detail(header, DETAIL_HEADER) == "full"


# -- fields that Responses does not have, or not under this name ---------------------------
_one_stop = short_text(MAX_STOP_CHARS).described("The answer ends there.")


def _read_stop(value: Any, name: str) -> list[str]:
    stops = value
    if isinstance(value, str):
        stops = [value]
    if not isinstance(stops, list):
        raise wrong_type(name, "a string or an array of strings")
    if len(stops) > MAX_STOPS:
        raise InvalidRequest(
            f"{name} may hold at most {MAX_STOPS} sequences.", param=name, code="out_of_range"
        )
    return [_one_stop(stop, f"{name}[{index}]") for index, stop in enumerate(stops)]


def _read_count(value: Any, name: str) -> int:
    if integer(1, 128)(value, name) != 1:
        raise InvalidRequest(
            "n must be 1: this server gives one answer.", param=name, code="unsupported_value"
        )
    return 1


def _read_biases(value: Any, name: str) -> Fields:
    for token, bias in an_object(value, name).items():
        _bias(bias, f"{name}.{token}")
    return dict(value)


def _read_modalities(value: Any, name: str) -> Any:
    if value != ["text"]:
        raise InvalidRequest(f"{name} is not supported.", param=name, code="unsupported_value")
    return value


_bias = number(-MAX_BIAS, MAX_BIAS)
_stop_schema = any_of(_one_stop.schema, array_of(_one_stop.schema, maxItems=MAX_STOPS))
OWN_FIELDS: dict[str, Field[Any]] = {
    "audio": unsupported(),
    "frequency_penalty": number(-2, 2),
    "function_call": unsupported(),
    "functions": unsupported(),
    "logit_bias": Field(_read_biases, {"type": "object", "additionalProperties": _bias.schema}),
    "logprobs": boolean,
    "modalities": Field(_read_modalities, const(["text"])),
    "n": Field(_read_count, const(1)),
    "presence_penalty": number(-2, 2),
    "seed": integer(*SEEDS),
    "stop": Field(_read_stop, _stop_schema),
    "stream_options": object_of({"include_usage": boolean, "include_obfuscation": boolean}),
    "top_logprobs": integer(0, 20),
    "web_search_options": an_object,
}
_ACTED_ON = frozenset((*SAME, *TRANSLATED, "messages", "n", "stream_options", "stop"))
_NOT_PASSED_ON = frozenset(
    (*SAME, *TRANSLATED, "messages", "n", "stream_options", "top_logprobs", "modalities")
)


def _extras(given: Fields, own: Fields) -> Fields:
    """Fields for an upstream with Chat Completions; OpenAI rejects an empty ``stop``."""
    extras: Fields = {}
    for name, value in given.items():
        value = own.get(name, value)
        if name in _NOT_PASSED_ON or (name == "stop" and not value):
            continue
        extras[name] = value
    return extras


def _ignored(given: Fields, read: CreateRequest, sent: list[SentItem]) -> list[str]:
    """The names of all fields that nothing acts on."""
    unknown = given.keys() - _ACTED_ON - {"modalities", "top_logprobs"}
    if unknown:
        unknown = unsent_fields(read.admission.model, unknown, is_chat_request=True)
    if "top_logprobs" in given and not given.get("logprobs"):
        unknown = unknown | {"top_logprobs"}
    if "stream_options" in given and not read.wants_stream:
        unknown = unknown | {"stream_options"}
    names = chat_names(read.admission.ignored, sent) + sorted(unknown)
    for index, message in enumerate(given["messages"]):
        if message.get("name") is not None and message["role"] != "tool":
            names.append(f"messages[{index}].name")
    return names


def _dropped_history(messages: list[SentItem], sent: list[SentItem]) -> list[str]:
    """History in the body, where the session has its own."""
    turns = [one for one in messages if one.role not in INSTRUCTION_ROLES]
    if len(turns) == len(sent):
        return []
    return [f"messages before {sent[0].path} (the history is the session's)"]
