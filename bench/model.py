"""A model whose words are the times at which they are generated."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator

from gateway_app.agent.events import ModelEvent, ModelFinished, TextDelta, Usage
from gateway_app.agent.model_call import ModelCall
from responses_app.protocol.items import item_text


class ClockProvider:
    """Generates words as the input asks: ``{"words": count, "pace": words per second}``.

    A word is ``<time of its generation in epoch ns>+<lateness in µs>``. Each word is due at a fixed time
    after the first one, so that a stalled event loop appears as lateness and not as a slower model.
    """

    identity = ""

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        order = json.loads(item_text(call.items[-1]))
        count, pace = int(order["words"]), float(order["pace"])
        now = asyncio.get_running_loop().time
        start = now()
        for number in range(count):
            due = start + number / pace
            await asyncio.sleep(max(0.0, due - now()))
            late_us = max(0, round((now() - due) * 1e6))
            yield TextDelta(f"{time.time_ns()}+{late_us} ")
        yield ModelFinished("stop", Usage(input_tokens=1, output_tokens=count))
