"""The estimate of tokens beside the counts of real tokenizers."""

from statistics import mean

import pytest

from responses_app.protocol.token_estimate import SAMPLED_CHARS, text_tokens
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
