"""The consumer of the ``generate`` channel."""

from typing import Any

from channels.consumer import AsyncConsumer

from gateway_app.runtime.runner import Runner


class GenerateConsumer(AsyncConsumer):
    """Passes hints to the runner and returns at once: a worker handles one message at a time."""

    channel_layer_alias = "none"

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self.runner = runner

    async def generate_run(self, message: dict[str, Any]) -> None:
        self.runner.hint(message["response_id"], message["owner_id"])

    async def generate_cancel(self, message: dict[str, Any]) -> None:
        self.runner.cancel(message["response_id"])
