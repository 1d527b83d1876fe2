"""A dialect: what one kind of model server sends, demands and refuses, as data and small hooks."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from gateway_app.config.presets.facts import Continuation
from tests.support.model_stub import Answer, Asked, Call, Step

Body = dict[str, Any]
Delta = dict[str, Any]
CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class Refused:
    """Why a request is refused; the fields are those of the error beside its message."""

    message: str
    status: int = 400
    fields: Mapping[str, Any] = field(default_factory=dict)


Rule = Callable[[Asked], Refused | None]


class UsageForm(Enum):
    OWN_CHUNK_IF_ASKED = auto()  # behind the last choice, without one
    WITH_FINISH = auto()  # beside the finish reason, also unasked
    NONE = auto()


def split(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def content(text: str, size: int) -> Iterator[Delta]:
    for piece in split(text, size):
        yield {"content": piece}


@dataclass(frozen=True, kw_only=True)
class ChatForm:
    """The chunks of a Chat Completions stream."""

    extra: Mapping[str, Any] = field(default_factory=dict)  # beside id, object, created and model
    opening: tuple[Delta | bytes, ...] = ()  # deltas, or bytes as they are
    has_role_in_first: bool = False
    piece_chars: int = 4  # about a token
    text: Callable[[str, int], Iterator[Delta]] = content
    reasoning: Callable[[str, int], Iterator[Delta]] | None = None  # None: it is hidden
    calls: Callable[[Sequence[Call], int], Iterator[Delta]]
    calls_reason: str = "tool_calls"
    usage: UsageForm = UsageForm.OWN_CHUNK_IF_ASKED
    last_extra: Mapping[str, Any] = field(default_factory=dict)  # of the chunk with the finish reason
    closing: tuple[bytes, ...] = ()  # before [DONE]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    name: str
    provider: str  # the preset that users choose for it
    api_mode: str = "chat_completions"
    form: ChatForm | None = None  # None: the Responses API
    call_id: Callable[[int], str]
    error: Callable[[Refused], Answer]
    rules: tuple[Rule, ...]
    window_tokens: int = 4000
    # From the tokens of the request and the window: a refusal, or what is sent as it is. None: the oldest
    # messages are dropped, and nothing says so.
    overflow: Callable[[int, int], Refused | tuple[Step, ...]] | None
    hides_stream_errors: bool = False  # of too long a request: its stream is empty
    broken_off: tuple[Step, ...]  # how an answer breaks off in its middle
    continuation: Continuation = Continuation.NOTE
    echoes_prefix: bool = False
    # Is this the form in which the server enforces, or at least knows, a schema?
    has_format: Callable[[Body, Body], bool]
    limit_fields: tuple[str, ...] = ("max_tokens", "max_completion_tokens")  # those that it reads
    counts_tokens: bool = True
    must_return: str = ""  # what the request after a call of the model must have
    sends_broken_json: bool = True  # the arguments of a call are what the model wrote

    @property
    def hides_reasoning(self) -> bool:
        return self.form is not None and self.form.reasoning is None


def refusal(dialect: Dialect, asked: Asked) -> Refused | None:
    for rule in dialect.rules:
        refused = rule(asked)
        if refused is not None:
            return refused
    return None


def error_object(refused: Refused) -> Answer:
    """OpenAI's form, and that of most servers."""
    error = {"message": refused.message, "type": "invalid_request_error", "param": None, "code": None}
    return Answer(refused.status, json.dumps({"error": error | dict(refused.fields)}).encode())


def asked_tokens(body: Body) -> int:
    shown = json.dumps([body.get("messages") or body.get("input"), body.get("instructions"), body.get("tools")])
    return len(shown) // CHARS_PER_TOKEN


def schema_of_chat(body: Body, schema: Body) -> bool:
    wanted = body.get("response_format") or {}
    return bool(wanted.get("type") == "json_schema" and wanted["json_schema"]["schema"] == schema)


# -- the forms of calls -------------------------------------------------------------------
def arguments_in_pieces(calls: Sequence[Call], size: int) -> Iterator[Delta]:
    """OpenAI: id and name in the first delta of a call only, the index in each."""
    for index, call in enumerate(calls):
        function = {"name": call.name, "arguments": ""}
        yield _calls({"index": index, "id": call.call_id, "type": "function", "function": function})
        for piece in split("".join(call.pieces), size):
            yield _calls({"index": index, "function": {"arguments": piece}})


def whole_calls(calls: Sequence[Call], size: int) -> Iterator[Delta]:
    for index, call in enumerate(calls):
        function = {"name": call.name, "arguments": "".join(call.pieces)}
        yield _calls({"index": index, "id": call.call_id, "type": "function", "function": function})


def calls_as_text(calls: Sequence[Call], size: int) -> Iterator[Delta]:
    """As the templates of Hermes and Qwen write them."""
    blocks = []
    for call in calls:
        arguments = "".join(call.pieces)
        blocks.append(f'<tool_call>\n{{"name": "{call.name}", "arguments": {arguments}}}\n</tool_call>')
    yield from content("\n".join(blocks), size)


def _calls(fragment: Body) -> Delta:
    return {"tool_calls": [fragment]}
