"""What fits into a window: pure arithmetic, and the choice of what is dropped."""

import pytest

from gateway_app.agent.budget import MAX_RATIO, Budget, Correction
from gateway_app.agent.model_faults import ContextOverflow
from responses_app.protocol.context_limits import ContextLimits
from responses_app.protocol.items import Item
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.protocol.truncation import fitted

LONG = "word " * 200


def user(text: str) -> Item:
    return {"type": "message", "role": "user", "content": text}


def answer(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": text}


def called(call_id: str) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": LONG}


def output(call_id: str) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": LONG}


def size(items: list[Item]) -> int:
    return estimate_tokens(items, None, [])


def test_the_upstreams_counts_correct_the_estimate() -> None:
    budget = Budget(window=8000, correction=Correction())
    assert budget.tokens(1000) == 1000
    budget.correction.learn(1000, 1300)
    assert (budget.tokens(2000), budget.room(0)) == (2600, int(6000 / 1.3))
    budget.correction.learn(1000, 9000)  # one odd text
    assert 1.3 < budget.correction.ratio < 1.5
    for _ in range(30):
        budget.correction.learn(1000, 9000)
    assert budget.correction.ratio == pytest.approx(MAX_RATIO, rel=0.01)


def test_a_count_of_a_cut_prompt_teaches_nothing() -> None:
    correction = Correction()
    correction.learn(9000, 4096)
    correction.learn(10, 30)
    assert correction.ratio == 1.0


def test_the_answer_has_its_share_of_the_window() -> None:
    budget = Budget(window=8000)
    assert budget.room(fixed=500) == 5500
    assert budget.room(fixed=500, max_output_tokens=100) == 7400
    assert budget.room(fixed=0, max_output_tokens=4000) == 4000  # vLLM counts what is requested
    assert budget.room(fixed=0, max_output_tokens=100_000) == 2000
    assert Budget(window=128_000).room(0) == 128_000 - 4096


def test_an_overflow_shows_the_window() -> None:
    assert Budget().after_overflow(9000, ContextOverflow(window=4096)).window == 4096
    assert Budget().after_overflow(9000, ContextOverflow()).window == 6750
    assert Budget(window=5000).after_overflow(9000, ContextOverflow()).window == 5000


@pytest.mark.parametrize("tokens", [None, 9000, 30_000])
@pytest.mark.parametrize("limit", [None, 100, 2000])
def test_every_overflow_makes_the_request_shorter(tokens: int | None, limit: int | None) -> None:
    estimated = 5000
    budget = Budget(window=8192).after_overflow(estimated, ContextOverflow(tokens, window=8192), limit)
    needed = estimated
    if tokens is not None:
        needed = estimated * (8192 - (limit or 0)) // tokens
    assert budget.room(0, limit) < min(estimated, needed + 1)
    assert budget.room(0, limit) > 300


def test_an_answer_for_which_there_was_no_room_gets_it() -> None:
    budget = Budget(window=8192).after_overflow(6000, ContextOverflow(6000, 8192), 4000)
    assert budget.room(0, 4000) == 4192


def test_the_oldest_turns_are_dropped_whole() -> None:
    first = [user("first"), called("a"), output("a"), answer("done")]
    second = [user("second"), called("b"), output("b"), answer("done")]
    last = [user("last")]
    everything = [*first, *second, *last]
    assert fitted(everything, size(everything)) == everything
    assert fitted(everything, size(everything) - 1) == [*second, *last]
    assert fitted(everything, 1) == last


def test_the_oldest_rounds_of_the_last_turn_are_dropped_whole() -> None:
    question = [user("the question")]
    first = [called("a"), called("b"), output("a"), output("b")]
    second = [called("c"), output("c")]
    third = [called("d"), output("d")]
    everything = [*question, *first, *second, *third]
    assert fitted(everything, size(everything) - 1) == [*question, *second, *third]
    assert fitted(everything, 1) == [*question, *third]


def test_rules_and_summaries_stay() -> None:
    rule: Item = {"type": "message", "role": "developer", "content": "Be short."}
    summary: Item = {"type": "message", "role": "user", "content": "what was", "compacted": "summary"}
    everything = [rule, summary, user(LONG), answer(LONG), user("last")]
    assert fitted(everything, 50) == [rule, summary, user("last")]


def test_a_user_who_speaks_between_a_call_and_its_output_splits_neither() -> None:
    everything = [user("one"), called("a"), user("hurry"), output("a"), answer("done"), user("two")]
    assert fitted(everything, 20) == [user("two")]
    assert fitted(everything[:-1], 20) == [user("one"), user("hurry"), answer("done")]


def test_what_other_clients_sent_refuses_nothing_at_admission() -> None:
    limits = ContextLimits(window=8192, fixed_tokens=100, ratio=2.0)
    assert (limits.tokens(5000), limits.least_tokens(5000)) == (10_200, 5100)
    assert ContextLimits(window=8192, ratio=0.6).least_tokens(5000) == 3000


def test_the_operators_own_limit_of_an_answer_has_its_room() -> None:
    budget = Budget(8000, max_tokens=5000)
    assert (budget.room(0), budget.room(0, 1000)) == (3000, 7000)
    assert Budget(8000, max_tokens=50_000).room(0) == 2000  # the request keeps a quarter
    assert (budget.summary_tokens(), Budget(8000, max_tokens=500).summary_tokens()) == (2000, 500)
    assert (Budget().summary_tokens(), Budget(max_tokens=500).summary_tokens()) == (None, 500)
    limits = ContextLimits(window=8000, max_tokens=5000)
    assert (limits.room(None), limits.room(1000)) == (3000, 7000)
