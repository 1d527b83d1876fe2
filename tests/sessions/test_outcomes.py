"""How the end of a turn is reported: what was cut is no success."""

from typing import Any

import pytest

from gateway_app.api.sessions.renderers import outcome_fields
from responses_app.protocol.status import LIMITS, IncompleteReason


def outcome(status: str, reason: str | None = None) -> dict[str, bool]:
    body: Any = {"status": status, "incomplete_details": reason and {"reason": reason}}
    return outcome_fields(body)


@pytest.mark.parametrize("reason", [reason for reason in IncompleteReason if reason not in LIMITS])
def test_a_turn_that_was_cut_has_failed(reason: str) -> None:
    assert outcome("incomplete", reason)["failed"]


@pytest.mark.parametrize("reason", LIMITS)
def test_a_turn_that_met_a_limit_is_partial(reason: str) -> None:
    found = outcome("incomplete", reason)
    assert (found["failed"], found["partial"], found["completed"]) == (False, True, False)


def test_a_stopped_turn_is_interrupted_and_no_failure() -> None:
    found = outcome("cancelled")
    assert (found["failed"], found["interrupted"]) == (False, True)
