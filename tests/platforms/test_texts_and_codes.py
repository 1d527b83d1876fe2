"""Long texts become several messages, cut where a reader expects it."""

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
