"""Campaigns with processes that die or freeze, and with engines that fail."""

from tests.faults.campaigns.cluster import faults
from tests.faults.campaigns.cluster.base import ClusterCampaign
from tests.faults.campaigns.kill import Tempo


class KillProcess(ClusterCampaign):
    name = "kill of a process"
    counts = "`kill -9` of a web process or worker"
    kinds = (faults.kill,)


class Freeze(ClusterCampaign):
    name = "freeze"
    counts = "SIGSTOP past the lease, SIGCONT"
    kinds = (faults.freeze,)


class RedisFault(ClusterCampaign):
    name = "Redis"
    counts = "Redis killed and started, emptied, or hung"
    kinds = (faults.restart_redis, faults.empty_redis, faults.hang_redis)


class PostgresRestart(ClusterCampaign):
    name = "PostgreSQL"
    counts = "PostgreSQL restarted"
    kinds = (faults.restart_fast, faults.restart_immediate)


class OneOfEach(ClusterCampaign):
    """All of these in turn, as the suite does."""

    name = "every fault"
    counts = "one after another"
    kinds = (faults.kill, faults.freeze, faults.restart_redis, faults.restart_immediate)
    suite = len(kinds)
    tempo = Tempo(paces=(60, 200), tool_secs=1.0)  # the suite is to be quick

    def next_fault(self) -> faults.Fault:
        return self.kinds[self.faults % len(self.kinds)]
