"""``POST /v1/chat/completions``: from a JSON object to an admission."""

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Any

import orjson
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gateway_app.api.chat.messages import (
    GUIDING_ROLES,
    Sent,
    guidance,
    newest,
    read_messages,
)
from gateway_app.api.chat.translation import (
    SAME,
    TRANSLATED,
    Fields,
    in_chat_names,
    in_chat_words,
    in_responses_words,
)
from gateway_app.providers.openai.chat_completions.request import CHAT_ONLY_FIELDS
from gateway_app.runtime.agents import agent_of
from gateway_app.runtime.turn_request import CHAT_FIELDS
from responses_app.http.principals import Principal
from responses_app.models.responses import Kind
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.create import CreateRequest, read_create
from responses_app.requests.fields import (
    Reader,
    an_object,
    boolean,
    choice,
    integer,
    number,
    optional,
    short_text,
    wrong_type,
)
from responses_app.services.lifecycle.admission import Admission

MAX_STOPS = 4
MAX_STOP_CHARS = 1000
MAX_BIAS = 100
SEEDS = (-(2**63), 2**63 - 1)
UNSUPPORTED = ("audio", "function_call", "functions", "modalities", "web_search_options")
DETAIL_HEADER = "X-Hermes-Tool-Detail"
PENALTIES = ("frequency_penalty", "presence_penalty")


@dataclass(frozen=True)
class ChatRequest:
    admission: Admission
    wants_stream: bool
    wants_usage: bool
    given: Fields
    sent: list[Sent]

    def explained(self, error: InvalidRequest) -> InvalidRequest:
        """What is wrong with the input, seen from the messages it came in."""
        return in_chat_words(error, self.given, self.sent)


def read_chat(
    body: Fields, principal: Principal, session_id: str | None = None, tool_form: str | None = None
) -> ChatRequest:
    """Check a request before anything is stored; null means the same as absent."""
    given = {name: value for name, value in body.items() if value is not None}
    own = {name: read(given[name], name) for name, read in _OWN.items() if name in given}
    _check_supported(given)
    if "messages" not in given:
        raise InvalidRequest(
            "messages is required.", param="messages", code="missing_required_parameter"
        )
    everything = read_messages(given["messages"])
    sent = everything if session_id is None else newest(everything)
    fields = in_responses_words(given)
    if session_id is not None and (instructions := guidance(everything)) is not None:
        fields["instructions"] = instructions
    try:
        read = read_create(
            {**fields, "input": [one.item for one in sent]}, principal, session_id, tool_form
        )
    except InvalidRequest as error:
        raise in_chat_words(error, given, sent) from None
    extras = _extras(given, own)
    return ChatRequest(
        admission=replace(
            read.admission,
            kind=Kind.CHAT,
            request={**fields, CHAT_FIELDS: extras},
            echo={**read.admission.echo, **{name: own[name] for name in PENALTIES if name in own}},
            ignored=(*_ignored(given, read, extras), *_dropped(everything, sent, session_id)),
            groups_with=None
            if session_id is not None
            else conversation_id(principal.owner_id, everything),
            stops_with_client=given.get("store") is not True,
        ),
        wants_stream=read.wants_stream,
        wants_usage=bool(own.get("stream_options", {}).get("include_usage")),
        given=given,
        sent=sent,
    )


def conversation_id(owner_id: int, sent: list[Sent]) -> str:
    """The same for every turn of a conversation, and nobody else's: its owner, guidance and first question."""
    opening = next((one.item["content"] for one in sent if one.role == "user"), None)
    first = next((index for index, one in enumerate(sent) if one.role == "user"), len(sent))
    told = orjson.dumps([owner_id, guidance(sent[:first]), opening])
    return "api-" + hmac.new(settings.SECRET_KEY.encode(), told, hashlib.sha256).hexdigest()[:32]


def wants_detail(header: str | None) -> bool:
    return header is not None and choice("full", "short")(header, DETAIL_HEADER) == "full"


# -- fields that only this door has -----------------------------------------------------
def _stop(value: Any, name: str) -> list[str]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise wrong_type(name, "a string or an array of strings")
    if len(value) > MAX_STOPS:
        raise InvalidRequest(
            f"{name} may hold at most {MAX_STOPS} sequences.", param=name, code="out_of_range"
        )
    return [
        short_text(MAX_STOP_CHARS)(stop, f"{name}[{index}]") for index, stop in enumerate(value)
    ]


def _one(value: Any, name: str) -> int:
    if integer(1, 128)(value, name) != 1:
        raise InvalidRequest(
            "n must be 1: this server gives one answer.", param=name, code="unsupported_value"
        )
    return 1


def _biases(value: Any, name: str) -> Fields:
    for token, bias in an_object(value, name).items():
        number(-MAX_BIAS, MAX_BIAS)(bias, f"{name}.{token}")
    return dict(value)


def _stream_options(value: Any, name: str) -> Fields:
    given = an_object(value, name)
    for option in ("include_usage", "include_obfuscation"):
        optional(boolean)(given.get(option), f"{name}.{option}")
    return given


_OWN: dict[str, Reader] = {
    "frequency_penalty": number(-2, 2),
    "logit_bias": _biases,
    "logprobs": boolean,
    "n": _one,
    "presence_penalty": number(-2, 2),
    "seed": integer(*SEEDS),
    "stop": _stop,
    "stream_options": _stream_options,
    "top_logprobs": integer(0, 20),
}
_ACTED_ON = frozenset({*SAME, *TRANSLATED, "messages", "n", "stream_options", "stop"})
_NOT_PASSED_ON = frozenset(
    {*SAME, *TRANSLATED, "messages", "n", "stream_options", "top_logprobs", "modalities"}
)


def _check_supported(given: Fields) -> None:
    for name in UNSUPPORTED:
        if name in given and not (name == "modalities" and given[name] == ["text"]):
            raise InvalidRequest(f"{name} is not supported.", param=name, code="unsupported_value")


def _extras(given: Fields, own: Fields) -> Fields:
    """What an upstream that speaks Chat Completions may know; to OpenAI an empty ``stop`` is an error."""
    extras = {
        name: own.get(name, value) for name, value in given.items() if name not in _NOT_PASSED_ON
    }
    return {name: value for name, value in extras.items() if name != "stop" or value}


def _ignored(given: Fields, read: CreateRequest, extras: Fields) -> list[str]:
    """Everything here that nothing acts on, by name."""
    unknown = given.keys() - _ACTED_ON - {"modalities"}
    if any(name in CHAT_ONLY_FIELDS for name in unknown) and _speaks_chat(read.admission.model):
        unknown = unknown - set(CHAT_ONLY_FIELDS)
    if given.get("logprobs"):
        unknown = unknown - {"top_logprobs"}
    if "stream_options" in given and not read.wants_stream:
        unknown = unknown | {"stream_options"}
    named = [
        f"messages[{n}].name" for n, message in enumerate(given["messages"]) if _is_named(message)
    ]
    return [*in_chat_names(read.admission.ignored), *sorted(unknown), *named]


def _is_named(message: Fields) -> bool:
    return message.get("name") is not None and message["role"] != "tool"


def _dropped(everything: list[Sent], sent: list[Sent], session_id: str | None) -> list[str]:
    """History in the body, where the session has its own."""
    spoken = [one for one in everything if one.role not in GUIDING_ROLES]
    if session_id is None or len(spoken) == len(sent):
        return []
    return [f"messages before {sent[0].path} (the history is the session's)"]


def _speaks_chat(model: str) -> bool:
    try:
        first = agent_of(model).models()[0]
    except ImproperlyConfigured:
        return True  # the turn fails and says why
    return first["provider"] != "builtin" and first["api_mode"] == "chat_completions"
