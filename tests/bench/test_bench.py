"""The benchmark itself: what it compares, what it prints, and one short measurement of the stub model."""

from pathlib import Path

import pytest

from bench.charts import svg
from bench.check import NOISE, compare, verdict
from bench.exchange import Exchange
from bench.harness import running_harness
from bench.page import replace_part
from bench.profiling import top_list
from bench.results import Results
from bench.scenarios import SCENARIOS, Run
from bench.table import markdown
from bench.targets import Direct
from bench.wire import STAMP_MODULO, age_ms, order, read_order

STORED = {"short chat cpu_ms_per_request": 0.1, "streams_50 chat cpu_us_per_token": 4.0}


def changed(by: float) -> dict[str, float]:
    return STORED | {"streams_50 chat cpu_us_per_token": 4.0 * (1 + by)}


@pytest.mark.parametrize(("by", "code"), [(NOISE + 0.01, 1), (NOISE - 0.01, 0), (0.0, 0), (-0.5, 0)])
def test_a_loss_beyond_noise_fails_the_check(by: float, code: int) -> None:
    comparisons = compare(STORED, changed(by))
    assert verdict(comparisons) == code
    assert ("LOSS" in comparisons[1].text) == bool(code)
    assert "ok" in comparisons[0].text


def test_a_figure_that_was_not_measured_is_named() -> None:
    with pytest.raises(SystemExit, match="streams_50"):
        compare(STORED, {"short chat cpu_ms_per_request": 0.1})


def results(ours_ms: float) -> Results:
    found = Results({})
    for target, first in (("direct", 1.0), ("litellm", 20.0), ("serve", ours_ms)):
        found.add("first_text", "chat", target, {"first_p50_ms": first, "foreign_share": 0.02})
    return found


def test_the_table_says_which_goals_are_reached() -> None:
    row = markdown(results(9.0)).splitlines()[-1]
    assert row.startswith("| time to first text, 1 client | 1 ms | 20 ms | 9 ms | ≤ 10 ms over direct ✓ | 4 ms ✗ |")
    assert "≤ 10 ms over direct ✗" in markdown(results(12.0))
    without_direct = Results({})
    without_direct.add("first_text", "chat", "serve", {"first_p50_ms": 9.0})
    assert "over direct |" in markdown(without_direct)


def test_the_median_of_the_rounds_counts() -> None:
    found = results(9.0)
    found.add("first_text", "chat", "serve", {"first_p50_ms": 5.0, "foreign_share": 0.5})
    found.add("first_text", "chat", "serve", {"first_p50_ms": 100.0, "foreign_share": 0.0})
    assert found.middle("first_text", "chat", "serve", "first_p50_ms") == 9.0
    assert found.as_json()["rows"][2]["figures"]["first_p50_ms"]["rounds"] == [9.0, 5.0, 100.0]


def test_only_the_part_between_the_marks_is_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nafter\n")
    replace_part("bench", "new", page)
    assert page.read_text() == "before\n<!-- bench: begin -->\nnew\n<!-- bench: end -->\nafter\n"
    with pytest.raises(SystemExit, match="growth"):
        replace_part("growth", "new", page)


def test_a_profile_is_listed_by_own_and_total_time() -> None:
    stacks = "thread (1);main (a/run.py:1);work (a/run.py:9) 30\nmain (a/run.py:2) 10\n"
    own, _, total = top_list(stacks).partition("with what it calls")
    assert "75.0%  work (a/run.py)" in own
    assert "25.0%  main (a/run.py)" in own
    assert "100.0%  main (a/run.py)" in total


def test_a_picture_has_a_line_for_each_curve() -> None:
    drawn = svg({"steps": [(10, 900), (10_000, 910)], "never": [(10, 0)]}, "turns")
    assert drawn.count("<polyline") == 2
    assert ">steps</text>" in drawn


def test_an_order_survives_its_way_and_a_stamp_the_end_of_its_range() -> None:
    history = order(1, 5) + order(2, 80, 50.0, words=True, after=1.5)
    assert read_order(history.encode()) == (80, 50.0, True, 1.5)
    assert age_ms(STAMP_MODULO - 1_000, 500) == 1.5


async def test_tokens_that_share_a_chunk_each_have_their_delay() -> None:
    exchange = Exchange(b"", None)  # type: ignore[arg-type]
    exchange.arrivals = [(5_000, b'data: {"delta":"000001'), (9_000, b'000 000002000 "}\n\n')]
    assert [token.delay_ms for token in exchange.tokens] == [8.0, 7.0]


@pytest.mark.timeout(60)
def test_the_stub_model_is_measured_end_to_end_in_both_protocols() -> None:
    target = Direct()
    with running_harness() as harness:
        target.start(harness.model_port)
        for api in ("chat", "responses"):
            first = SCENARIOS["first_text"].measure(Run(harness, target, api, 0.1))
            assert 0 < first["first_p50_ms"] < 1_000
            assert first["cpu_secs"] >= 0
            whole = SCENARIOS["short"].measure(Run(harness, target, api, 0.1))
            assert whole["rate"] > 0
            streams = SCENARIOS["streams_50"].measure(Run(harness, target, api, 0.3, count=3))
            assert streams["whole"] == 1
            assert 0 <= streams["added_p50_ms"] < 1_000
            flood = SCENARIOS["flood_50"].measure(Run(harness, target, api, 0.1, count=3))
            assert flood["tokens"] == 240
