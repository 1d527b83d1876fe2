"""The text of a running turn, from its provider to its log."""

from gateway_app.runtime.turn_log import TurnLog
from responses_app.database import database
from responses_app.protocol.text_buffer import TextBuffer


class TurnText:
    """The listener of a turn: each piece of text becomes a frame of the log."""

    def __init__(self, log: TurnLog) -> None:
        self._log = log

    @property
    def open_text(self) -> TextBuffer | None:
        return self._log.open_text

    async def write(self, texts: list[str]) -> bool:
        if not self._log.takes_text:
            return False
        self._log.write_text(texts)
        if database.writer.is_congested:
            await self._log.wait_for_disk()
        return True
