"""Checks of the whole cluster: its roles, versions, secrets and queues."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks

from gateway_app.operations import health
from gateway_app.operations.cluster import read_waiting, summarise
from gateway_app.operations.doctor.messages import Ok
from gateway_app.runtime.roles import Role
from gateway_app.runtime.shared_secrets import find_disagreeing
from gateway_app.runtime.shared_settings import find_differing

SHOWN = 5


def check_cluster() -> Iterator[checks.CheckMessage]:
    """Queries the database, which must be up to date."""
    cluster = summarise(health.processes(), read_waiting())
    if not cluster.roles:
        yield Ok("cluster", "no process runs on this database")
        return
    roles = ", ".join([f"{count} {role}" for role, count in sorted(cluster.roles.items())])
    queued = sum(queue.queued for queue in cluster.queue_by_owner)
    yield Ok(
        "cluster",
        f"{roles}; versions {', '.join(cluster.versions)}; {cluster.leases_held} leases held, "
        f"{cluster.leases_expired} expired; {queued} queued; lag {cluster.lag_ms} ms",
    )
    if settings.HERMES_DISPATCH == "workers" and not cluster.roles.get(Role.WORKER):
        yield checks.Warning(
            "no worker lives: web processes run the turns",
            hint="Start manage.py runworker generate.",
            obj="cluster",
            id="gateway_app.W060",
        )
    if len(cluster.versions) > 1:
        yield checks.Warning(
            "processes of several versions run",
            hint="Finish the upgrade: manage.py drain takes out the old ones.",
            obj="cluster",
            id="gateway_app.W061",
        )
    differing = find_differing()
    if differing:
        yield checks.Warning(
            f"{len(differing)} processes have other settings than this one: "
            + ", ".join([str(process) for process in differing[:SHOWN]]),
            hint="Give all the same models, config.yaml, HERMES_LEASE_SECS, HERMES_SWEEP_SECS and "
            "HERMES_WORKSPACES, and restart them.",
            obj="cluster",
            id="gateway_app.W063",
        )
    disagreeing = find_disagreeing()
    if disagreeing is not None:
        yield checks.Error(
            f"{disagreeing} runs with other secrets",
            hint="Give all processes the same HERMES_SECRET_KEY and API_SERVER_KEY.",
            obj="cluster",
            id="gateway_app.E062",
        )
