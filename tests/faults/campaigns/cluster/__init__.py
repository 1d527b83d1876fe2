"""Faults of several processes: two web processes and two workers on PostgreSQL and Redis.

``tests/cluster/test_campaigns.py`` runs some at their smallest size, ``make faults CLUSTER=1 ROUNDS=…`` all at any.
"""

from tests.faults.campaigns.cluster.base import ClusterCampaign
from tests.faults.campaigns.cluster.kinds import Freeze, KillProcess, OneOfEach, PostgresRestart, RedisFault
from tests.faults.campaigns.cluster.partitions import DatabasePartition, RedisPartition
from tests.faults.campaigns.cluster.saturation import Saturate

CLUSTER_KINDS: tuple[type[ClusterCampaign], ...] = (
    KillProcess,
    Freeze,
    RedisFault,
    PostgresRestart,
    DatabasePartition,
    RedisPartition,
    Saturate,
)

__all__ = [
    "CLUSTER_KINDS",
    "ClusterCampaign",
    "DatabasePartition",
    "Freeze",
    "KillProcess",
    "OneOfEach",
    "PostgresRestart",
    "RedisFault",
    "RedisPartition",
    "Saturate",
]
