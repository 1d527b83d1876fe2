"""A client of each API that talks with one model, and what it sees."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.chat_client import StreamedCompletion, response_id, stream_completion, streamed
from tests.support.server import Server, events, eventually, streaming, text

Function = dict[str, Any]
DELTAS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


@dataclass(frozen=True)
class SeenCall:
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One turn, as its client sees it."""

    response_id: str
    text: str
    reasoning: str
    calls: list[SeenCall]  # of the client's functions
    tools_run: list[str]  # by the server
    error: dict[str, Any] | None
    usage: dict[str, int]

    def call_of(self, word: str) -> SeenCall:
        return next(call for call in self.calls if word in call.arguments)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Options of a turn, in the words of neither API."""

    functions: Sequence[Function] | None = None  # None: the tools of the server
    effort: str = ""
    schema: dict[str, Any] | None = None
    is_any_json: bool = False
    system: str = ""  # at the beginning
    late_system: str = ""  # right before the user's message
    limit_tokens: int = 0  # of the answer
    more: Mapping[str, Any] = field(default_factory=dict)  # fields that both APIs have


PLAIN = Wanted()


@dataclass
class Conversation(ABC):
    server: Server
    model: str

    @abstractmethod
    def say(self, words: str, wanted: Wanted = PLAIN) -> Seen: ...

    @abstractmethod
    def answer(self, outputs: dict[str, str], then: str, wanted: Wanted) -> Seen:
        """The results of calls in this order, and the user's next message in the same request."""

    @abstractmethod
    def begin(self, words: str, until: str) -> str:
        """Start a turn that outlives its client, and return its id once this text has come."""

    @abstractmethod
    def stored_text(self, response_id: str) -> str:
        """The answer to a turn that has ended, read again."""


# -- Responses ----------------------------------------------------------------------------
@dataclass
class ResponsesConversation(Conversation):
    previous: str | None = None

    def say(self, words: str, wanted: Wanted = PLAIN) -> Seen:
        items = []
        if wanted.late_system:
            items.append({"role": "developer", "content": wanted.late_system})
        return self._ask([*items, {"role": "user", "content": words}], wanted)

    def answer(self, outputs: dict[str, str], then: str, wanted: Wanted) -> Seen:
        items: list[dict[str, Any]] = []
        for call_id, output in outputs.items():
            items.append({"type": "function_call_output", "call_id": call_id, "output": output})
        return self._ask([*items, {"role": "user", "content": then}], wanted)

    def begin(self, words: str, until: str) -> str:
        body = {"model": self.model, "input": words, "background": True}
        with self.server.http() as client:
            started: str = client.post("/v1/responses", json=body).json()["id"]
        eventually(lambda: until in text(self.server.body(started)), what="the first words")
        return started

    def stored_text(self, response_id: str) -> str:
        return text(self.server.body(response_id))

    def _ask(self, items: list[dict[str, Any]], wanted: Wanted) -> Seen:
        with streaming(self.server, **self._body(items, wanted)) as (_, received):
            found = events([frame for frame in received if frame.startswith(b"event: ")])
        last = found[-1]["response"]
        self.previous = last["id"]
        answered = {item["call_id"] for item in last["output"] if item["type"] == "function_call_output"}
        calls = [item for item in last["output"] if item["type"] == "function_call"]
        open_calls = [item for item in calls if item["call_id"] not in answered]
        return Seen(
            response_id=last["id"],
            text=_joined(found, ("response.output_text.delta",)),
            reasoning=_joined(found, DELTAS),
            calls=[SeenCall(item["call_id"], item["name"], item["arguments"]) for item in open_calls],
            tools_run=[item["name"] for item in calls if item["call_id"] in answered],
            error=last["error"] or last["incomplete_details"],
            usage=_usage(last["usage"], "input_tokens", "output_tokens"),
        )

    def _body(self, items: list[dict[str, Any]], wanted: Wanted) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "input": items, **wanted.more}
        if wanted.limit_tokens:
            body["max_output_tokens"] = wanted.limit_tokens
        if self.previous:
            body["previous_response_id"] = self.previous
        if wanted.system:
            body["instructions"] = wanted.system
        if wanted.functions is not None:
            body["tools"] = [{"type": "function", **function} for function in wanted.functions]
        if wanted.effort:
            body["reasoning"] = {"effort": wanted.effort, "summary": "auto"}
        if wanted.schema is not None:
            body["text"] = {"format": {"type": "json_schema", "name": "place", "schema": wanted.schema}}
        elif wanted.is_any_json:
            body["text"] = {"format": {"type": "json_object"}}
        return body


def _joined(found: list[dict[str, Any]], kinds: Sequence[str]) -> str:
    return "".join(event["delta"] for event in found if event["type"] in kinds)


# -- Chat Completions ---------------------------------------------------------------------
@dataclass
class ChatConversation(Conversation):
    """Its client keeps the messages and sends all of them each time."""

    messages: list[dict[str, Any]] = field(default_factory=list)

    def say(self, words: str, wanted: Wanted = PLAIN) -> Seen:
        if wanted.system:
            self.messages.append({"role": "system", "content": wanted.system})
        if wanted.late_system:
            self.messages.append({"role": "system", "content": wanted.late_system})
        self.messages.append({"role": "user", "content": words})
        return self._ask(wanted)

    def answer(self, outputs: dict[str, str], then: str, wanted: Wanted) -> Seen:
        for call_id, output in outputs.items():
            self.messages.append({"role": "tool", "tool_call_id": call_id, "content": output})
        self.messages.append({"role": "user", "content": then})
        return self._ask(wanted)

    def begin(self, words: str, until: str) -> str:
        messages = [{"role": "user", "content": words}]
        with streamed(self.server, messages, model=self.model, store=True) as (answer, received):
            completion = StreamedCompletion(answer.headers)
            for frame in received:
                if not frame.startswith(b":"):
                    completion.note(frame)
                if until in completion.joined("content"):
                    return response_id(completion.chunks[0]["id"])
        raise AssertionError("The stream ended before its text had come.")

    def stored_text(self, response_id: str) -> str:
        with self.server.http() as client:
            answer = client.get(f"/v1/chat/completions/{response_id.replace('resp_', 'chatcmpl-')}")
        return str(answer.json()["choices"][0]["message"]["content"])

    def _ask(self, wanted: Wanted) -> Seen:
        fields = self._fields(wanted)
        completion = stream_completion(self.server, self.messages, **fields)
        calls = _joined_calls(completion)
        message: dict[str, Any] = {"role": "assistant", "content": completion.joined("content") or None}
        if calls:
            message["tool_calls"] = [
                {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in calls
            ]
        self.messages.append(message)
        finished = [entry["tool"] for entry in completion.progress if entry.get("status") == "completed"]
        return Seen(
            response_id=response_id(completion.chunks[0]["id"]) if completion.chunks else "",
            text=completion.joined("content"),
            reasoning=completion.joined("reasoning_content"),
            calls=calls,
            tools_run=finished,
            error=completion.error,
            usage=_usage(completion.chunks[-1].get("usage"), "prompt_tokens", "completion_tokens"),
        )

    def _fields(self, wanted: Wanted) -> dict[str, Any]:
        fields: dict[str, Any] = {"model": self.model, "stream_options": {"include_usage": True}, **wanted.more}
        if wanted.limit_tokens:
            fields["max_completion_tokens"] = wanted.limit_tokens
        if wanted.functions is not None:
            fields["tools"] = [{"type": "function", "function": function} for function in wanted.functions]
        if wanted.effort:
            fields["reasoning_effort"] = wanted.effort
        if wanted.schema is not None:
            schema = {"name": "place", "schema": wanted.schema}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif wanted.is_any_json:
            fields["response_format"] = {"type": "json_object"}
        return fields


def _joined_calls(completion: StreamedCompletion) -> list[SeenCall]:
    found: dict[int, dict[str, str]] = {}
    for delta in completion.deltas:
        for fragment in delta.get("tool_calls") or ():
            call = found.setdefault(fragment["index"], {"id": "", "name": "", "arguments": ""})
            call["id"] = fragment.get("id") or call["id"]
            call["name"] = fragment["function"].get("name") or call["name"]
            call["arguments"] += fragment["function"].get("arguments") or ""
    return [SeenCall(call["id"], call["name"], call["arguments"]) for call in found.values()]


def _usage(given: dict[str, int] | None, inputs: str, outputs: str) -> dict[str, int]:
    if given is None:
        return {}
    return {"input": given[inputs], "output": given[outputs]}


CONVERSATIONS: dict[str, type[ResponsesConversation] | type[ChatConversation]] = {
    "responses": ResponsesConversation,
    "chat": ChatConversation,
}
