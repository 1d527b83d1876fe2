"""Single faults of a cluster. Each ends before it returns: afterwards every process and both engines run."""

import signal
import time
from collections.abc import Callable
from random import Random

from tests.support.cluster import Cluster
from tests.support.databases import PostgresCluster

Fault = Callable[[Cluster, Random], None]
# The short leases of docs/cluster.md. On an overloaded machine, shorter ones let no process claim anything.
LEASES = {"HERMES_LEASE_SECS": "3", "HERMES_SWEEP_SECS": "0.5"}
LEASE_SECS = float(LEASES["HERMES_LEASE_SECS"])
MAX_OUTAGE_SECS = 1.5


def kill(cluster: Cluster, dice: Random) -> None:
    member = dice.choice(cluster.members)
    member.kill()
    member.start()


def freeze(cluster: Cluster, dice: Random) -> None:
    """The others see that its lease is over, and take its turns; when it wakes, it can't write."""
    process = dice.choice(cluster.members).process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        past_the_lease(dice)
    finally:
        process.send_signal(signal.SIGCONT)


def restart_redis(cluster: Cluster, dice: Random) -> None:
    cluster.redis.stop()
    _outage(dice)
    cluster.redis.start()


def empty_redis(cluster: Cluster, dice: Random) -> None:
    cluster.redis.execute("FLUSHALL")


def hang_redis(cluster: Cluster, dice: Random) -> None:
    process = cluster.redis.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        _outage(dice)
    finally:
        process.send_signal(signal.SIGCONT)


def restart_fast(cluster: Cluster, dice: Random) -> None:
    _restart_postgres(cluster.postgres, "fast", dice)


def restart_immediate(cluster: Cluster, dice: Random) -> None:
    _restart_postgres(cluster.postgres, "immediate", dice)


def _restart_postgres(postgres: PostgresCluster, mode: str, dice: Random) -> None:
    postgres.stop(mode)
    _outage(dice)
    postgres.start()


# How long a fault lasts is a variable under test.
def past_the_lease(dice: Random) -> None:
    time.sleep(LEASE_SECS + dice.uniform(0, MAX_OUTAGE_SECS))


def _outage(dice: Random) -> None:
    time.sleep(dice.uniform(0, MAX_OUTAGE_SECS))
