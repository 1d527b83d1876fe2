"""The short way of text: from the provider to the listener, past the events between the layers.

Nearly all that a model sends is text of a message that is open already. The first piece of a message
is an event like any other, and opens it everywhere. What follows is written to the listener, and each
layer keeps only what it must know. Whatever else comes is an event again.
"""

from typing import Protocol

from responses_app.protocol.text_buffer import TextBuffer


class TextListener(Protocol):
    @property
    def open_text(self) -> TextBuffer | None:
        """The text of the open message, which ``write`` extends; None while there is none."""

    async def write(self, texts: list[str]) -> bool:
        """Extend the open text; if it can't, the texts are to be sent as events."""

    def write_now(self, texts: list[str]) -> bool:
        """``write`` without waiting; False where it would have to wait, too."""
