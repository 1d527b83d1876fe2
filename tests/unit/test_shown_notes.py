"""Notes take a part of the window at most, and the model knows that there are more."""

from typing import cast

from gateway_app.agent.tools import MEMORY, TODO
from gateway_app.runtime.notes import turn_facts
from gateway_app.tools import memory, todo
from responses_app.models import Response
from responses_app.protocol.token_estimate import text_tokens
from responses_app.services.lifecycle.claim import FreshTurn


class Fresh:
    notes = {
        MEMORY: [f"{number} " + "用户喜欢中文资料" * 60 for number in range(16)],
        TODO: ["[x] done " + "step " * 90, *(f"[ ] {number} " + "step " * 90 for number in range(49))],
    }


def shown(window: int) -> str:
    return turn_facts(Response(), cast(FreshTurn, Fresh()), (memory.TOOL, todo.TOOL), (), window)


def test_notes_take_a_part_of_a_small_window() -> None:
    text = shown(8192)
    assert text_tokens(text) < 8192 // 4 + 150
    assert "- 15 用户" in text
    assert "- 13 用户" not in text
    assert "14 older notes are not shown: the tool memory" in text
    assert "[ ] 0 step" in text
    assert "other entries are not shown: the tool todo" in text
    assert "[x] done" not in text


def test_a_large_window_shows_all() -> None:
    text = shown(1_000_000)
    assert "not shown" not in text
    assert "- 0 用户" in text
    assert "[x] done" in text
