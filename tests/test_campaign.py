"""A short kill campaign; ``make faults`` runs a long one."""

import random
import time
from collections.abc import Callable

from tests.campaign import Campaign
from tests.harness import Server

ROUNDS = 10
BUDGET_SECS = 40.0  # for each database; a busy machine does fewer rounds rather than more minutes
MIN_ROUNDS = 3


def test_nothing_is_lost_stuck_or_run_twice_however_often_it_is_killed(make_server: Callable[..., Server]) -> None:
    seed = random.randrange(10**6)
    campaign = Campaign(make_server(HERMES_LEASE_SECS="2"), seed)
    began = time.monotonic()
    while campaign.kills < ROUNDS and (campaign.kills < MIN_ROUNDS or time.monotonic() - began < BUDGET_SECS):
        campaign.round()
    checked = campaign.check()
    print(f"seed {seed}: {campaign.kills} kills, {checked} responses")
    assert checked >= campaign.kills
    assert "Traceback" not in campaign.server.log
