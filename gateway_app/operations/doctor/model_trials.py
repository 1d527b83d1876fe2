"""The kinds of requests that an agent makes, each tried once with a real call."""

import base64
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from gateway_app.agent.events import ModelFailed
from gateway_app.agent.model_call import ModelCall, Provider
from gateway_app.config.presets.facts import Continuation, Preset
from gateway_app.operations.doctor.model_reply import (
    BreaksOnce,
    Reply,
    ask_for_usage,
    ask_model,
)
from responses_app.protocol.items import ContentPart, Item

MAX_OUTPUT_TOKENS = 2000  # a model that thinks needs most of them for its reasoning
SHOWN_CHARS = 60
FILLER = "The quick brown fox jumps over the lazy dog. "
FILLER_TOKENS = 10  # of one sentence, for the usual tokenizers
WINDOW_SHARE = 0.85  # the rest is for the answer and for other tokenizers
MAX_LONG_TOKENS = 100_000  # a longer prompt costs more than it teaches
CODE_WORD = "marzipan"
BEGINNING = "one, two, three, four, fi"
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
CITY_FORMAT = {
    "type": "json_schema",
    "name": "city",
    "strict": True,
    "schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "inhabitants": {"type": "integer"}},
        "required": ["city", "inhabitants"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True)
class Subject:
    """The model that is tried."""

    provider: Provider
    preset: Preset
    name: str
    window: int  # in tokens; 0 means unknown


@dataclass(frozen=True)
class Finding:
    works: bool
    text: str
    advice: str = ""
    is_fatal: bool = False  # the agent can't work like this


Trial = Callable[[Subject], Awaitable[Finding]]


def _call(subject: Subject, prompt: str | list[ContentPart], **fields: Any) -> ModelCall:
    items: list[Item] = [{"type": "message", "role": "user", "content": prompt}]
    return ModelCall(
        model=subject.name,
        items=items,
        max_output_tokens=MAX_OUTPUT_TOKENS,
        is_retry=True,  # on a new connection: a kept one may be closed, and no trial is repeated
        **fields,
    )


async def try_text(subject: Subject) -> Finding:
    reply = await ask_model(subject.provider, _call(subject, "Answer with the word: ready"))
    if not reply.text.strip():
        return Finding(False, f"an empty answer ({reply.reason})", is_fatal=True)
    text = f"{_shown(reply.text)} in {reply.secs:.1f} s"
    if reply.deviations:
        text += f" ({', '.join(reply.deviations)})"
    return Finding(True, text)


async def try_usage(subject: Subject) -> Finding:
    used = await ask_for_usage(subject.provider, _call(subject, "Count to three."))
    if used.input_tokens and used.output_tokens:
        return Finding(True, f"{used.input_tokens} tokens in, {used.output_tokens} out")
    return Finding(False, "the stream has no token counts", "They are estimated.")


async def try_tool(subject: Subject) -> Finding:
    prompt = "What is the weather in Paris? Use the tool."
    try:
        reply = await ask_model(subject.provider, _call(subject, prompt, client_tools=(WEATHER,)))
    except ModelFailed as failure:
        advice = (
            "Every request of an agent has tools. Start the model's server with support for them "
            "(vLLM: --enable-auto-tool-choice and a --tool-call-parser; llama-server: --jinja), "
            "or choose a model that has it."
        )
        return Finding(False, failure.message, advice, is_fatal=True)
    cities = _cities(reply)
    if cities == ["paris"]:
        return Finding(True, f"{_shown(reply.calls[0].arguments)} in {reply.secs:.1f} s")
    if reply.calls:
        arguments = reply.calls[0].arguments
        return Finding(False, f"a call with other arguments: {_shown(arguments)}", "")
    advice = "Choose a model that is trained for tools."
    if "tool_call" in reply.text or "get_weather" in reply.text:
        advice = "The call is in the text: the model's server does not know the model's format."
    return Finding(False, f"no call, but {_shown(reply.text)}", advice)


async def try_parallel_tools(subject: Subject) -> Finding:
    prompt = "What is the weather in Paris and in Rome? Call the tool for both at the same time."
    reply = await ask_model(
        subject.provider,
        _call(
            subject,
            prompt,
            client_tools=(WEATHER,),
            parameters={"parallel_tool_calls": True},
        ),
    )
    if sorted(_cities(reply)) == ["paris", "rome"]:
        return Finding(True, f"2 calls in {reply.secs:.1f} s")
    return Finding(
        False, f"{len(reply.calls)} calls of 2", "Calls are made one after the other then."
    )


async def try_structured_output(subject: Subject) -> Finding:
    reply = await ask_model(
        subject.provider,
        _call(
            subject,
            "Name a large city and the number of its inhabitants.",
            parameters={"text": {"format": CITY_FORMAT}},
        ),
    )
    try:
        found = json.loads(reply.text)
        is_valid = found.keys() == {"city", "inhabitants"} and isinstance(found["city"], str)
    except (ValueError, AttributeError):
        is_valid = False
    if is_valid:
        return Finding(True, f"{_shown(reply.text)} in {reply.secs:.1f} s")
    advice = "Clients that ask for a JSON schema get other text; check the preset."
    return Finding(False, f"the schema is not followed: {_shown(reply.text)}", advice)


async def try_image(subject: Subject) -> Finding:
    picture = f"data:image/png;base64,{base64.b64encode(red_square()).decode()}"
    parts: list[ContentPart] = [
        {"type": "input_text", "text": "Which colour is this picture? Answer with one word."},
        {"type": "input_image", "image_url": picture},
    ]
    reply = await ask_model(subject.provider, _call(subject, parts))
    if "red" in reply.text.lower():
        return Finding(True, f"{_shown(reply.text)} in {reply.secs:.1f} s")
    return Finding(
        False, f"a red picture is {_shown(reply.text)}", "The model may see no pictures."
    )


async def try_reasoning(subject: Subject) -> Finding:
    reply = await ask_model(
        subject.provider,
        _call(subject, "What is 17 * 23?", parameters={"reasoning": {"effort": "low"}}),
    )
    if reply.reasoning:
        return Finding(True, f"{len(reply.reasoning)} characters in {reply.secs:.1f} s")
    if reply.usage.reasoning_tokens:
        return Finding(True, f"{reply.usage.reasoning_tokens} tokens, which the server hides")
    return Finding(False, "none: the model does not think, or its server hides it")


async def try_continuation(subject: Subject) -> Finding:
    """As after a lost connection: is the answer continued in the middle of a word?"""
    prompt = "Write the numbers from one to ten as words, separated by commas, and nothing else."
    provider = BreaksOnce(subject.provider, BEGINNING)
    reply = await ask_model(provider, _call(subject, prompt))
    text = reply.text.strip().lower()
    if text.startswith("ve"):
        return Finding(True, f"exactly where it broke off, in {reply.secs:.1f} s")
    advice = ""
    if subject.preset.continuation is Continuation.NOTE:
        advice = "Presets of servers that can continue a message do so; see docs/models.md."
    if "six" in text and not text.startswith("one"):
        return Finding(False, f"almost: {_shown(reply.text)} follows {BEGINNING!r}", advice)
    return Finding(False, f"it starts anew: {_shown(reply.text)}", advice)


async def try_long_context(subject: Subject) -> Finding:
    if not subject.window:
        return Finding(
            False, "not tried: the context window is not known", "Set HERMES_CONTEXT_LENGTH."
        )
    tokens = min(int(subject.window * WINDOW_SHARE), MAX_LONG_TOKENS)
    filler = FILLER * (tokens // FILLER_TOKENS)
    prompt = f"The code word is {CODE_WORD}. {filler}\nWhat is the code word? Answer with one word."
    reply = await ask_model(subject.provider, _call(subject, prompt))
    if CODE_WORD in reply.text.lower():
        return Finding(True, f"about {tokens} tokens in {reply.secs:.1f} s")
    advice = "The model's server may drop the beginning of long prompts: lower the context length."
    return Finding(False, f"of about {tokens} tokens the first are lost", advice)


# In this order; the agent can't do without the first.
TRIALS: dict[str, Trial] = {
    "text": try_text,
    "usage": try_usage,
    "tool": try_tool,
    "parallel": try_parallel_tools,
    "structured": try_structured_output,
    "image": try_image,
    "reasoning": try_reasoning,
    "continue": try_continuation,
    "long": try_long_context,
}


def _cities(reply: Reply) -> list[str]:
    found = []
    for call in reply.calls:
        try:
            city = json.loads(call.arguments)["city"]
        except (ValueError, KeyError, TypeError):
            continue
        found.append(str(city).partition(",")[0].strip().lower())
    return found


def _shown(text: str) -> str:
    text = " ".join(text.split())
    if len(text) > SHOWN_CHARS:
        text = f"{text[:SHOWN_CHARS]}…"
    return repr(text)


def red_square(side: int = 64) -> bytes:
    """A PNG file."""
    row = b"\0" + b"\xff\0\0" * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(row * side)), (b"IEND", b"")
    data = b"\x89PNG\r\n\x1a\n"
    for kind, content in chunks:
        checksum = zlib.crc32(kind + content)
        data += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
    return data
