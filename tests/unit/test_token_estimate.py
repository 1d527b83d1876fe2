"""The estimate of tokens beside the counts of real tokenizers."""

from statistics import mean

import pytest

from responses_app.protocol.token_estimate import SAMPLED_CHARS, item_tokens, text_tokens
from tests.support.token_samples import COUNTS, TEXTS


@pytest.mark.parametrize("script", sorted(TEXTS))
def test_every_script_is_counted_within_a_fourth_of_what_tokenizers_find(script: str) -> None:
    estimated = text_tokens(TEXTS[script])
    assert 0.8 <= estimated / mean(COUNTS[script]) <= 1.26


@pytest.mark.parametrize("script", sorted(TEXTS))
def test_a_long_text_is_judged_by_its_parts(script: str) -> None:
    repeats = 5 * SAMPLED_CHARS // len(TEXTS[script])
    by_slices = text_tokens(TEXTS[script] * repeats)
    assert by_slices == pytest.approx(text_tokens(TEXTS[script]) * repeats, rel=0.12)


def test_a_book_of_chinese_is_not_a_quarter_of_its_size() -> None:
    assert text_tokens("渡" * 31_204) > 28_000


def test_a_mixed_text_counts_each_of_its_parts() -> None:
    mixed = TEXTS["english"] * 40 + TEXTS["base64"] * 20
    apart = text_tokens(TEXTS["english"] * 40) + text_tokens(TEXTS["base64"] * 20)
    assert text_tokens(mixed) == pytest.approx(apart, rel=0.1)


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("Z\u0301\u0310\u0322\u0334" * 1000, 4000),
        ("\u0250\u0251\u0252" * 1000, 3000),
        ("\u00a0\u00ab\u00b0" * 1000, 3000),
        ("\x02" * 4000, 4000),
        ("\n" * 4000, 500),
        (" " * 4000, 500),
    ],
)
def test_no_text_is_free(text: str, least: int) -> None:
    assert text_tokens(text) >= least


def test_calls_count_with_all_that_the_model_wrote() -> None:
    long = "print(12345) " * 500
    custom = item_tokens({"type": "custom_tool_call", "call_id": "c", "name": "py", "input": long})
    assert custom > text_tokens(long)
    assert item_tokens({"type": "function_call", "call_id": "c", "name": "n" * 60, "arguments": "{}"}) > 6
