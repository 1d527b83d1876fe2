"""Links that lose every packet: one worker without PostgreSQL, and all processes without Redis."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Self

from tests.faults.campaigns.cluster.base import WEBS, ClusterCampaign
from tests.faults.campaigns.cluster.faults import Fault, past_the_lease
from tests.support.cluster import Cluster, DistantWorker, redis_server
from tests.support.migrated_database import Database
from tests.support.network import HERE, THERE, Namespace, can_make_namespaces, namespace


class Partition(ClusterCampaign):
    link: Namespace

    @classmethod
    def unavailable(cls) -> str:
        return "" if can_make_namespaces() else "network namespaces need root and iproute2"

    def next_fault(self) -> Fault:
        return self.cut

    def cut(self, cluster: Cluster, dice: Random) -> None:
        self.link.cut()
        try:
            past_the_lease(dice)
        finally:
            self.link.join()


class DatabasePartition(Partition):
    """The worker on the other side loses its turns to the others, and can't write when the link is back."""

    name = "partition from PostgreSQL"
    counts = "one worker cut off for longer than its lease"

    @classmethod
    @contextmanager
    def opened(cls, database: Database, home: Path, seed: str) -> Iterator[Self]:
        assert database.cluster is not None
        with namespace(sys.executable) as link, redis_server("127.0.0.1", HERE) as redis:
            database.cluster.trust(THERE)
            cluster = Cluster(database, home, redis, **cls.env)
            try:
                cluster.worker()
                database_url = cluster.first.env["DATABASE_URL"].replace("127.0.0.1", HERE)
                redis_url = redis.url.replace("127.0.0.1", HERE)
                DistantWorker.launch = staticmethod(link.launch)
                cluster.member(
                    DistantWorker, DATABASE_URL=database_url, REDIS_URL=redis_url, HERMES_DATABASE_TIMEOUT="2"
                )
                for _ in range(WEBS):
                    cluster.web()
                campaign = cls(cluster, seed)
                campaign.link = link
                yield campaign
            finally:
                cluster.stop()


class RedisPartition(Partition):
    name = "partition from Redis"
    counts = "all processes cut off from Redis"

    @classmethod
    @contextmanager
    def opened(cls, database: Database, home: Path, seed: str) -> Iterator[Self]:
        with namespace(sys.executable) as link, redis_server(THERE, prefix=link.command()) as redis:
            cluster = Cluster(database, home, redis, **cls.env)
            try:
                cls.start_members(cluster)
                campaign = cls(cluster, seed)
                campaign.link = link
                yield campaign
            finally:
                cluster.stop()
