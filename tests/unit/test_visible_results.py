"""How much of a tool's result a model sees, and how it is to read the rest."""

from gateway_app.runtime.visible_results import ResultCap
from gateway_app.tools.read_file import TOOL as READ_FILE
from responses_app.protocol.token_estimate import text_tokens

LONG = "word " * 40_000


def test_the_cap_follows_the_window() -> None:
    assert len(ResultCap().visible("look", LONG)) < 50_200
    for window in (8_192, 32_768, 131_072):
        seen = ResultCap(window).visible("look", LONG)
        assert window // 10 < text_tokens(seen) < window // 8 + 60
    assert ResultCap(1_000_000).visible("look", LONG) == LONG


def test_scripts_of_many_tokens_are_cut_sooner() -> None:
    seen = ResultCap(8_192).visible("look", "渡" * 5_000)
    assert text_tokens(seen) < 1_100


def test_the_cut_names_the_tool_and_its_arguments() -> None:
    cap = ResultCap(8_192, {"read_file": READ_FILE})
    assert "call read_file again with the same path, and offset and limit" in cap.visible("read_file", LONG)
    assert "call other again with arguments that return less" in cap.visible("other", LONG)


def test_the_results_of_one_round_share_its_room() -> None:
    seen = ResultCap(8_192, together=12).visible("look", LONG)
    assert 12 * text_tokens(seen) < 8_192 // 2
    assert ResultCap(8_192, together=2).tokens == ResultCap(8_192).tokens
    assert (ResultCap(8_192).images(0), ResultCap(8_192, together=2).images(1)) == (2, 1)
    assert [ResultCap(8_192, together=10).images(number) for number in (0, 1, 2, 9)] == [1, 1, 0, 0]
