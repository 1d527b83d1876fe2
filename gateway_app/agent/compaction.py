"""Compaction: a conversation becomes its summary, within a turn or as a turn of its own."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from gateway_app.agent.answer_buffer import Said
from gateway_app.agent.context import text_of
from gateway_app.agent.events import (
    AgentEvent,
    Compaction,
    Item,
    ModelCall,
    ModelFailed,
    OpaqueItem,
    Provider,
    Quirk,
    TurnFinished,
    Usage,
)
from gateway_app.agent.rounds import ask
from gateway_app.agent.summary import summary_note
from responses_app.protocol.items import CompactedContext

NO_SUMMARY = "The model gave no whole summary of the conversation ({reason})."


async def compact(
    providers: Sequence[Provider],
    asked: ModelCall,
    retries: int,
    stand: Callable[[str], CompactedContext],
) -> AsyncGenerator[Quirk | Compaction]:
    """Ask for a summary; nobody hears a word of it before it is whole."""
    yield Compaction()
    said = Said()
    async with aclosing(ask(providers, asked, retries)) as events:
        async for event in events:
            said.note(event)
            if isinstance(event, Quirk):
                yield event
    finish = said.finish
    summary = "".join(text_of(item) for item in said.items() if item["type"] == "message").strip()
    if finish.reason != "stop" or not summary:
        raise ModelFailed(NO_SUMMARY.format(reason=finish.reason), usage=finish.usage)
    yield Compaction(stand(summary), finish.usage)


@dataclass(frozen=True)
class Recap:
    """A turn whose answer is what is kept as it is, then what stands for the rest."""

    asked: ModelCall
    kept: tuple[Item, ...]  # what is not told yet
    carried: tuple[Item, ...] = ()  # what can't be summed up, inside

    def standing(self, summary: str) -> CompactedContext:
        return CompactedContext([*self.carried, summary_note(summary)])


async def run_compaction(
    providers: Sequence[Provider], recap: Recap, retries: int, spent: Usage | None
) -> AsyncGenerator[AgentEvent]:
    """``spent`` is known where an earlier attempt got as far as the summary."""
    for item in recap.kept:
        yield OpaqueItem(item)
    if spent is None:
        spent = Usage()
        async with aclosing(compact(providers, recap.asked, retries, recap.standing)) as events:
            async for event in events:
                yield event
                spent += event.usage if isinstance(event, Compaction) else Usage()
    yield TurnFinished(spent)
