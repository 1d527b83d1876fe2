"""Every kind of fault of a cluster once; ``make faults CLUSTER=1`` injects them many times."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.campaigns.cluster import CLUSTER_KINDS, OneOfEach
from tests.support.databases import postgres_cluster
from tests.support.migrated_database import Database
from tests.support.ports import free_port

pytestmark = pytest.mark.timeout(400)  # however busy the machine is


@pytest.fixture
def own_postgres(database: Database) -> Iterator[Database]:
    """A server that may be restarted, with the tables of the others."""
    with postgres_cluster(free_port()) as postgres:
        yield Database(database.template.parent, postgres)


def test_nothing_is_lost_stuck_or_run_twice_by_the_faults_of_a_cluster(own_postgres: Database, tmp_path: Path) -> None:
    seed = os.environ.get("FAULT_SEED", str(random.randrange(10**6)))
    print("FAULT_SEED", seed)
    with OneOfEach.opened(own_postgres, tmp_path / "home", seed) as campaign:
        campaign.run(OneOfEach.suite)
    assert sum(campaign.injected.values()) == len(OneOfEach.kinds)
    assert campaign.checked > 0


def test_the_sizes_of_these_campaigns_are_what_the_docs_say() -> None:
    sizes = {rounds: [kind.size(rounds) for kind in CLUSTER_KINDS] for rounds in (10, 100)}
    assert sizes == {10: [10, 10, 10, 10, 10, 10, 5], 100: [100, 100, 100, 100, 100, 100, 300]}
