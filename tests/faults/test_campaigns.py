"""Each campaign at the size of the suite; ``make faults`` runs longer ones, all of them on both databases."""

import os
import random
from collections.abc import Callable

import pytest

from tests.faults.campaigns import KINDS, Campaign, Kill
from tests.faults.campaigns.base import SUITE_ROUNDS
from tests.support.server import Server

pytestmark = pytest.mark.timeout(400)  # so many rounds, however busy the machine is


def test_nothing_is_lost_stuck_or_run_twice_in_kills(make_server: Callable[..., Server]) -> None:
    run(Kill, make_server)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not Kill], ids=lambda kind: str(kind.name))
def test_nothing_is_lost_stuck_or_run_twice(make_server: Callable[..., Server], kind: type[Campaign]) -> None:
    run(kind, make_server)


def run(kind: type[Campaign], make_server: Callable[..., Server]) -> None:
    seed = os.environ.get("FAULT_SEED", str(random.randrange(10**6)))
    print("FAULT_SEED", seed)
    campaign = kind(make_server(**kind.env), seed)
    campaign.run(kind.size(SUITE_ROUNDS))
    print(campaign.faults, "faults,", campaign.checked, "responses;", kind.remark([campaign]))
    assert campaign.faults == kind.size(SUITE_ROUNDS)
    assert campaign.checked > 0


def test_the_sizes_are_what_the_docs_say() -> None:
    sizes = {rounds: [kind.size(rounds) for kind in KINDS] for rounds in (10, 100, 500, 1000)}
    assert sizes == {
        10: [10, 10, 5, 100, 50, 5],
        100: [100, 100, 50, 1000, 200, 50],
        500: [500, 300, 100, 5000, 200, 200],
        1000: [1000, 600, 200, 10_000, 200, 400],
    }
