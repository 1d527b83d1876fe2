"""Which process claims stored turns, as workers come and go."""

import time

import pytest
from django.test import override_settings

from gateway_app.runtime.roles import Claims, Role

pytestmark = pytest.mark.any_database


@override_settings(HERMES_DISPATCH="workers")
def test_a_web_process_claims_two_seconds_after_the_last_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claims = Claims(Role.WEB)
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    taken: list[bool] = []
    for now, live in ((10.0, 1), (11.0, 0), (12.9, 0), (13.0, 0), (14.0, 1), (15.0, 0), (17.0, 0)):
        clock[0] = now
        claims.note_workers(live)
        taken.append(claims.takes_stored)
    assert taken == [False, False, False, True, False, False, True]


@pytest.mark.parametrize("dispatch", ["inprocess", "workers", "none"])
def test_a_worker_always_claims(dispatch: str) -> None:
    with override_settings(HERMES_DISPATCH=dispatch):
        assert Claims(Role.WORKER).takes_stored
