"""Stop sequences, for every model: one whose server knows them never gets as far as being cut here."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from gateway_app.agent.events import (
    Item,
    ModelCall,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    TextDelta,
    Usage,
)
from responses_app.protocol.token_estimate import estimate_tokens, tokens_of


def until_stop(events: AsyncGenerator[ModelEvent], call: ModelCall) -> AsyncGenerator[ModelEvent]:
    """The answer up to the first stop sequence in its text; the rest is never asked for."""
    stops = call.chat_extras.get("stop")
    return _cut(events, call, _Watch(stops)) if stops else events


async def _cut(
    events: AsyncGenerator[ModelEvent], call: ModelCall, watch: "_Watch"
) -> AsyncGenerator[ModelEvent]:
    async with aclosing(events):
        try:
            async for event in events:
                if not isinstance(event, TextDelta):
                    for held in watch.release():
                        yield held
                    yield event
                    continue
                for said in watch.hear(event):
                    yield said
                if watch.is_stopped:
                    yield ModelFinished("stop", watch.usage(call))
                    return
        except ModelFailed:
            for held in watch.release():
                yield held
            raise


class _Watch:
    """Holds text back for as long as it may be the beginning of a stop sequence."""

    def __init__(self, stops: list[str]) -> None:
        self.is_stopped = False
        self._stops = stops
        self._held = ""
        self._said_chars = self._marked_chars = 0
        self._logprobs: list[Item] = []  # of tokens that are not said yet

    def hear(self, delta: TextDelta) -> list[TextDelta]:
        text = self._held + delta.text
        self._logprobs += delta.logprobs
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        self.is_stopped = bool(found)
        end = min(found) if found else len(text) - self._beginning(text)
        self._held = "" if found else text[end:]
        return self._say(text[:end])

    def release(self) -> list[TextDelta]:
        held, self._held = self._held, ""
        return self._say(held)

    def usage(self, call: ModelCall) -> Usage:
        """An estimate: the upstream counts at the end, which nobody waits for."""
        asked = estimate_tokens(call.items, call.instructions, call.tool_specs())
        return Usage(asked, tokens_of(self._said_chars))

    def _say(self, text: str) -> list[TextDelta]:
        self._said_chars += len(text)
        said: list[Item] = []
        while (
            self._logprobs
            and self._marked_chars + len(self._logprobs[0]["token"]) <= self._said_chars
        ):
            self._marked_chars += len(self._logprobs[0]["token"])
            said.append(self._logprobs.pop(0))
        return [TextDelta(text, tuple(said))] if text else []

    def _beginning(self, text: str) -> int:
        """How many of the last characters begin a stop sequence."""
        longest = max(len(stop) for stop in self._stops) - 1
        sizes = range(min(longest, len(text)), 0, -1)
        return next(
            (size for size in sizes if any(stop.startswith(text[-size:]) for stop in self._stops)),
            0,
        )
