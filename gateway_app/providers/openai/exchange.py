"""One request to an upstream, and its answer."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

from gateway_app.providers.openai.answer import Answer
from gateway_app.providers.openai.client import Opening, UpstreamClient
from gateway_app.providers.openai.event_reader import Takes
from gateway_app.providers.openai.sse import Event


@dataclass
class Exchange:
    """The plain form, which every upstream takes; others replace it where an upstream can do more."""

    client: UpstreamClient
    open: Callable[[UpstreamClient, dict[str, Any], dict[str, Any]], Opening]
    body: dict[str, Any]
    answer: Answer

    # The name of the form, for the operators and to remember that an upstream refuses it.
    form = ""

    def events(
        self, headers: dict[str, Any], tokens: int, takes: Takes | None
    ) -> AsyncGenerator[list[Event]]:
        opening = self.open(self.client, self.body, headers)
        is_streamed = self.body["stream"]
        return self.client.events(opening, self.answer.is_last, tokens, is_streamed, takes)
