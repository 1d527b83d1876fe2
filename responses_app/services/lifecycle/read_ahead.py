"""Long reads that are made before the writer's transaction, not within it."""

from collections.abc import Hashable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Question(Hashable, Protocol[T_co]):
    """A read that may be long. Its fields hold all that its answer depends on."""

    def answer(self) -> T_co: ...


class NotRead(Exception):
    """The transaction needs this answer: roll back, read it elsewhere, and try again."""

    def __init__(self, question: Question[Any]) -> None:
        super().__init__(question)
        self.question = question


class ReadAhead:
    """The answers that one admission has so far."""

    def __init__(self) -> None:
        self._answers: dict[Question[Any], Any] = {}

    def get(self, question: Question[T]) -> T:
        """Raises NotRead: every stream of the process would wait for a read within the writer."""
        if question not in self._answers:
            raise NotRead(question)
        answer: T = self._answers[question]
        return answer

    def read(self, question: Question[Any]) -> None:
        self._answers[question] = question.answer()
