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

    @property
    def images(self) -> int:
        """How many images of one result the model sees."""
        if not self.window:
            return MAX_IMAGES
        room = self.window // ROUND_SHARE // self.together
        return min(MAX_IMAGES, max(1, room // TOKENS_PER_IMAGE))

    def shared_by(self, call: ToolCall) -> "ResultCap":
        """For a call whose round has others too."""
        return replace(self, together=call.together)

    def result(
        self, call: ToolCall, output: str, images: tuple[str, ...], *, is_error: bool
    ) -> ToolResult:
        cap = self.shared_by(call)
        visible = cap.visible(call.name, output)
        if len(images) > cap.images:
            visible += f"\n[Only {cap.images} of {len(images)} images are shown.]"
        return ToolResult(visible, is_error, images[: cap.images])

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
