"""Long texts become several messages, cut where a reader expects it."""

import time

import pytest

from gateway_app.platforms.pairing_code import svg_path, terminal_lines
from gateway_app.platforms.qr_code import TooLong, qr_modules
from gateway_app.platforms.splitting import first_part, message_units, split_text

# Read by OpenCV's decoder, and equal to the one that the Python package qrcode makes.
HELLO = """\
#######.#.###.#######
#.....#...##..#.....#
#.###.#.##.#..#.###.#
#.###.#.##..#.#.###.#
#.###.#.#..#..#.###.#
#.....#..####.#.....#
#######.#.#.#.#######
"""


def test_a_text_that_fits_stays_whole() -> None:
    assert split_text("  hello\n", 100) == ["hello"]
    assert split_text(" \n", 100) == []
    assert first_part("", 10) == ""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("aaa bbb\n\nccc ddd\n\neee", ["aaa bbb\n\nccc ddd", "eee"]),
        ("aaaa bbbb cccc\ndddd eeee", ["aaaa bbbb cccc", "dddd eeee"]),
        ("aaaa bbbb cccc dddd eeee ffff", ["aaaa bbbb cccc dddd", "eeee ffff"]),
        ("Aaaa bb. Cccc dd. Eeee ff. Gggg", ["Aaaa bb. Cccc dd.", "Eeee ff. Gggg"]),
        ("x" * 45, ["x" * 20, "x" * 20, "x" * 5]),
        ("a\n\n" + "b" * 30, ["a\n\n" + "b" * 17, "b" * 13]),
    ],
)
def test_a_text_is_cut_at_a_paragraph_a_line_a_sentence_or_a_word(text: str, parts: list[str]) -> None:
    assert split_text(text, 20) == parts
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_emoji_count_as_the_platforms_count_them() -> None:
    parts = split_text("😀" * 15, 20)
    assert [message_units(part) for part in parts] == [20, 10]


def test_a_long_text_of_emoji_is_split_in_linear_time() -> None:
    """A reply is split in the transaction that ends its turn: the writes of all streams wait for it."""
    began = time.thread_time()
    parts = split_text("😀" * 50_000, 4096)
    assert time.thread_time() - began < 2
    assert "".join(parts) == "😀" * 50_000


@pytest.mark.parametrize("character", ["👨‍👩‍👧‍👦", "👍🏽", "é", "🇩🇪", "❤️"])
def test_no_visible_character_is_cut(character: str) -> None:
    for room in range(30, 50):
        for part in split_text(character * 40, room):
            assert part.replace(character, "") == ""


@pytest.mark.parametrize("room", [0, 1, -5])
def test_every_text_comes_to_its_end_however_small_the_room(room: int) -> None:
    assert split_text("😀 ab", room) == ["😀", "a", "b"]


def test_a_block_of_code_is_closed_and_opened_again_and_keeps_its_indentation() -> None:
    lines = [f"    line {number} = 'some text'" for number in range(40)]
    text = "\n".join(["Look:", "", "```python", *lines, "```", "", "The end. " * 20])
    parts = split_text(text, 300)
    assert max(message_units(part) for part in parts) <= 300
    assert [part.count("```") % 2 for part in parts] == [0] * len(parts)
    assert parts[1].startswith("```python\n    line ")
    shown = [line for part in parts for line in part.split("\n")]
    assert [line for line in shown if line.startswith("    ")] == lines
    assert parts[-1].endswith("The end.")


def test_a_fence_as_long_as_a_message_is_text() -> None:
    text = "```" + "x" * 200 + "\ncode"
    assert "".join(split_text(text, 60)).replace("\n", "") == text.replace("\n", "")


def test_a_pairing_code_is_a_valid_qr_code() -> None:
    rows = ["".join("#" if module else "." for module in row) for row in qr_modules("HELLO")]
    assert "\n".join(rows[:7]) + "\n" == HELLO
    assert len(qr_modules("x" * 240)) == 57
    path, side = svg_path("HELLO")
    assert side == 29
    assert path.startswith("M4 4h1v1h-1z")
    assert len(terminal_lines("HELLO")) == 15
    with pytest.raises(TooLong):
        qr_modules("x" * 859)
