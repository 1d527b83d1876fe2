"""A model server that speaks one dialect, on a real socket."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from gateway_app.config.presets.facts import Continuation
from tests.dialects.chat_stream import ChatStream
from tests.dialects.dialect import Body, Dialect, Refused, asked_tokens, refusal
from tests.dialects.responses_stream import ResponsesStream
from tests.support.model_stub import Answer, Asked, Call, Finish, ModelStub, Step, Text
from tests.support.server import Server

OUTPUT_TOKENS = 7  # of every answer


class DialectUpstream(ModelStub):
    """Its scripts are what the model generates; the dialect decides how that looks, and what is refused."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__()
        self.dialect = dialect
        self.answered: list[Asked] = []  # the requests that were not refused
        self.refused: list[str] = []
        self.counted: list[int] = []  # the tokens of each request that was answered to its end
        self._call_numbers = count(1)

    def forget(self) -> None:
        """A test begins: scripts and requests of others are no concern of it."""
        self._scripts.clear()
        for known in (self.asked, self.answered, self.refused, self.counted):
            known.clear()

    @property
    def bodies(self) -> list[Body]:
        return [asked.body for asked in self.answered]

    def call(self, name: str, arguments: str) -> Call:
        return Call(self.dialect.call_id(next(self._call_numbers)), name, (arguments,))

    def _next_script(self, asked: Asked) -> Sequence[Step]:
        if not asked.body:  # a list of models, which no dialect has
            return (Answer(404, b'{"error": {"message": "Not Found"}}'),)
        refused = refusal(self.dialect, asked)
        if refused is not None:
            self.refused.append(refused.message)
            return (self.dialect.error(refused),)
        tokens = asked_tokens(asked.body)
        if tokens > self.dialect.window_tokens:
            return self._overflow(asked, tokens)
        script = self._scripts.pop(0) if self._scripts else (Text("Hello."), Finish())
        return self._stream(asked, script, tokens)

    def _overflow(self, asked: Asked, tokens: int) -> Sequence[Step]:
        window = self.dialect.window_tokens
        if self.dialect.overflow is None:
            return self._stream(asked, (Text("Hello."), Finish()), window)
        if self.dialect.hides_stream_errors and asked.body.get("stream"):
            return ()
        overflow = self.dialect.overflow(tokens, window)
        if not isinstance(overflow, Refused):
            return overflow
        self.refused.append(overflow.message)
        return (self.dialect.error(overflow),)

    def _stream(self, asked: Asked, script: Sequence[Step], tokens: int) -> Sequence[Step]:
        self.answered.append(asked)
        if any(isinstance(step, Finish) for step in script):
            self.counted.append(tokens)
        if self.dialect.echoes_prefix:
            last = asked.body["messages"][-1]
            if last.get("prefix"):
                script = (Text(last["content"]), *script)
        form = self.dialect.form
        if form is None:
            return ResponsesStream(len(self.asked), (tokens, OUTPUT_TOKENS)).add(script)
        return ChatStream(form, asked.body, len(self.asked), (tokens, OUTPUT_TOKENS)).add(script)


@dataclass(frozen=True)
class Front:
    """The server that is tested, and the model servers behind it."""

    server: Server
    upstreams: dict[str, DialectUpstream]


def is_continuation(dialect: Dialect, asked: Asked, text: str) -> bool:
    """Does the request make this server go on with the text, in the server's own way?"""
    last: dict[str, Any] = asked.body["messages"][-1]
    if (last["role"], last["content"]) != ("assistant", text):
        return False
    if dialect.continuation is Continuation.FINAL_MESSAGE:
        return asked.body.get("continue_final_message") is True and asked.body.get("add_generation_prompt") is False
    if dialect.continuation is Continuation.PREFIX:
        return last.get("prefix") is True
    return dialect.continuation is Continuation.TRAILING


def shown(body: Body) -> str:
    return json.dumps(body.get("messages") or body.get("input"), ensure_ascii=False)
