"""The text of a round on its short way: the answer knows of it, the listener has it."""

from gateway_app.agent.answer_buffer import AnswerBuffer
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.text_listener import TextListener
from responses_app.protocol.text_buffer import TextBuffer, clean_text


class AnswerText:
    """Passes text on to the listener, whose buffer is also that of the answer's open message."""

    def __init__(self, listener: TextListener, answer: AnswerBuffer) -> None:
        self._listener = listener
        self._answer = answer

    @property
    def open_text(self) -> TextBuffer | None:
        return self._listener.open_text

    async def write(self, texts: list[str]) -> bool:
        cleaned = self._cleaned(texts)
        if cleaned is None or not await self._listener.write(cleaned):
            return False
        self._count(cleaned)
        return True

    def write_now(self, texts: list[str]) -> bool:
        cleaned = self._cleaned(texts)
        if cleaned is None or not self._listener.write_now(cleaned):
            return False
        self._count(cleaned)
        return True

    def _cleaned(self, texts: list[str]) -> list[str] | None:
        """None where the text is not of the message that the answer has open."""
        if not self._answer.shares(self._listener.open_text):
            return None
        return [clean_text(text) for text in texts]

    def _count(self, texts: list[str]) -> None:
        for text in texts:
            self._answer.chars += len(text)


def listener_of(call: ModelCall, answer: AnswerBuffer) -> TextListener | None:
    """None where a filter has to see each text."""
    is_filtered = call.is_formatted or bool(call.chat_extras.get("stop"))
    if call.text_listener is None or is_filtered:
        return None
    return AnswerText(call.text_listener, answer)
