"""What a client is asked, and what must hold afterwards."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.clients.programs import Form, Program
from tests.support.long_conversations import SUMMARY
from tests.support.scripted_requests import call, effects
from tests.support.server import Server, script
from tests.support.stored_rows import stored_rows

WINDOW = 8000
LONG = "word " * 4000  # fills most of the window
SOME = "word " * 1500  # does not fit beside it


@dataclass(frozen=True)
class Case:
    form: Form
    word: str  # only this case uses it
    questions: list[str]
    texts: list[str]  # the answers, or parts of them

    def sent(self) -> dict[str, Any]:
        return {
            "api": self.form.api,
            "is_streamed": self.form.is_streamed,
            "is_chained": self.form.is_chained,
            "questions": self.questions,
        }

    @property
    def continued_turns(self) -> int:
        return len(self.questions) - 1 if self.form.is_chained else 0


@dataclass(frozen=True)
class Scenario:
    name: str
    env: dict[str, str] = field(default_factory=dict)

    def programs(self, known: Sequence[Program]) -> list[Program]:
        """Those that can take part."""
        return list(known)

    def case(self, program: Program, form: Form) -> Case:
        raise NotImplementedError

    def problem(self, server: Server, case: Case, texts: list[str]) -> str:
        raise NotImplementedError


class ServerTool(Scenario):
    """A tool of the server runs in the first turn; the second turn knows its result."""

    def case(self, program: Program, form: Form) -> Case:
        word = f"{program.name} {form.label}"
        first = script(call("effect", text=word))
        return Case(form, word, [first, _asking(f"next of {word}")], [f"The result is {word}.", f"next of {word}"])

    def problem(self, server: Server, case: Case, texts: list[str]) -> str:
        ran = effects(server, case.word)
        if ran != 1:
            return f"the tool ran {ran} times"
        rounds = [made for made in server.model_calls(case.word) if made["event"] == "started"]
        if len(rounds) != 3:
            return f"the model was asked {len(rounds)} times, not 3: the client answered a call"
        if case.texts[0] not in str(rounds[-1]["texts"]):
            return f"the model did not get the first answer in the second turn: {rounds[-1]['texts']}"
        return _text_problem(case, texts)


class Compaction(Scenario):
    """The second turn does not fit into the window, and the third continues."""

    def programs(self, known: Sequence[Program]) -> list[Program]:
        return [program for program in known if not program.has_own_tools]

    def case(self, program: Program, form: Form) -> Case:
        word = f"{program.name} {form.label}"
        questions = [_asking(f"one {word}", LONG), _asking(f"two {word}", SOME), _asking(f"three {word}")]
        return Case(form, word, questions, [f"one {word}", f"two {word}", f"three {word}"])

    def problem(self, server: Server, case: Case, texts: list[str]) -> str:
        last = server.model_calls(f"three {case.word}")[-1]["texts"]
        if not any(text.startswith(SUMMARY) for text in last):
            return "the model got no summary in the third turn"
        if case.form.api == "responses" and not _has_compaction(server, case):
            return "the client got no compaction item"
        return _text_problem(case, texts)


def _has_compaction(server: Server, case: Case) -> bool:
    outputs = [str(output) for (output,) in stored_rows(server, "response", "output")]
    return any(case.texts[1] in output and "compaction" in output for output in outputs)


def _asking(answer: str, padding: str = "") -> str:
    """A question that the scripted model answers so."""
    return json.dumps({"script": [{"say": answer}], "padding": padding})


def _text_problem(case: Case, texts: list[str]) -> str:
    if len(texts) != len(case.texts):
        return f"the answers are {texts}"
    for text, expected in zip(texts, case.texts, strict=True):
        if expected not in text:  # promptfoo shows the call before the answer
            return f"the answer is {text!r}, not {expected!r}"
    return ""


SCENARIOS = (
    ServerTool("a tool of the server"),
    Compaction("a compaction", {"HERMES_CONTEXT_LENGTH": str(WINDOW)}),
)
