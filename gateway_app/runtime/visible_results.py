"""What a model and a client see of a tool's result; the ledger keeps all of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway_app.agent.tools import Tool, ToolCall, ToolResult
from responses_app.protocol.token_estimate import TOKENS_PER_IMAGE, text_tokens

WINDOW_SHARE = 8  # one result gets at most one part in so many of the window
ROUND_SHARE = 4  # all results of a round together
MIN_TOKENS, MAX_TOKENS = 500, 50_000
LEAST_TOKENS = 50  # of one of very many
MAX_IMAGES = 100
DEFAULT_TOKENS, DEFAULT_CHARS = 16_000, 50_000  # where the window is not known
CHARS_PER_TOKEN = 4  # a text of few tokens is bounded too
DEFAULT_HINT = "call {name} again with arguments that return less."


@dataclass(frozen=True)
class ResultCap:
    """By the window of the model."""

    window: int = 0  # in tokens; 0 means unknown
    tools: Mapping[str, Tool] = field(default_factory=dict)
    together: int = 1  # calls of one round

    @property
    def tokens(self) -> int:
        if not self.window:
            return DEFAULT_TOKENS
        alone = min(MAX_TOKENS, max(MIN_TOKENS, self.window // WINDOW_SHARE))
        return max(LEAST_TOKENS, min(alone, self.window // ROUND_SHARE // self.together))

    def images(self, number: int) -> int:
        """How many images of one result the model sees; ``number`` is that of the call.

        If there is no room for one image of each call, the first calls of the round have one.
        """
        if not self.window:
            return MAX_IMAGES
        of_round = max(1, self.window // ROUND_SHARE // TOKENS_PER_IMAGE)
        if of_round < self.together:
            return int(number < of_round)
        return min(MAX_IMAGES, of_round // self.together)

    def shared_by(self, call: ToolCall) -> "ResultCap":
        """For a call whose round has others too."""
        return replace(self, together=call.together)

    def result(
        self, call: ToolCall, output: str, images: tuple[str, ...], *, is_error: bool
    ) -> ToolResult:
        cap = self.shared_by(call)
        visible = cap.visible(call.name, output)
        shown = cap.shown_images(call, images)
        if len(images) > len(shown):
            count = f"{len(shown)} of {len(images)}"
            visible += f"\n[{count} images are shown: there is no room for more.]"
        return ToolResult(visible, is_error, shown)

    def shown_images(self, call: ToolCall, images: tuple[str, ...]) -> tuple[str, ...]:
        """The ledger keeps these alone: a later attempt shows what it has."""
        return images[: self.shared_by(call).images(call.number)]

    def visible(self, name: str, output: str) -> str:
        """Both ends of an output that is too long, and between them how to read the rest."""
        chars = DEFAULT_CHARS
        if self.window:
            chars = self.tokens * CHARS_PER_TOKEN
        if len(output) * 2 > self.tokens:  # no text has more than two tokens for each character
            tokens = text_tokens(output)
            if tokens > self.tokens:
                chars = min(chars, len(output) * self.tokens // tokens)
        if len(output) <= chars:
            return output
        half = chars // 2
        count = len(output) - 2 * half
        cut = (
            f"\n[... {count} characters are left out here. To read them, {self._hint(name)} ...]\n"
        )
        return output[:half] + cut + output[-half:]

    def _hint(self, name: str) -> str:
        tool = self.tools.get(name)
        if tool is None or not tool.rest_hint:
            return DEFAULT_HINT.format(name=name)
        return tool.rest_hint


DEFAULT_CAP = ResultCap()
