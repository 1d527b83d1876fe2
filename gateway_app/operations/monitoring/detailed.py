"""The body of ``/health/detailed``: Hermes' own fields, and details for keys and staff."""

import os
from dataclasses import asdict
from typing import Any

from django.conf import settings

from gateway_app.operations.health import API_SERVER, Health, living_state

PLATFORM = "hermes-agent"


def public_fields(health: Health) -> dict[str, Any]:
    """Without paths, hosts and checks: commands of the agent can read this too."""
    running = health.running_processes
    state: str | None = None
    platforms: dict[str, Any] = {}
    exit_reason: str | None = None
    updated_at: str | None = None
    if running:
        state = living_state()
        platforms = dict(API_SERVER)
        for report in health.platforms:
            platforms[report.name] = report.public()
        updated_at = max(process.heartbeat_at for process in running).isoformat()
    elif health.processes:
        state = "stopped"
        exit_reason = health.processes[0].exit_reason or None
    active = 0
    if health.work is not None:
        active = health.work.running
    return {
        "status": health.status,
        "platform": PLATFORM,
        "gateway_state": state,
        "platforms": platforms,
        "active_agents": active,
        "exit_reason": exit_reason,
        "updated_at": updated_at,
        "pid": None,
    }


def all_fields(health: Health, *, has_owners: bool) -> dict[str, Any]:
    body = public_fields(health)
    body["version"] = settings.HERMES_VERSION
    body["pid"] = os.getpid()
    for report in health.platforms:
        body["platforms"][report.name] = report.details()
    body["readiness"] = {"status": health.status, "checks": health.checks}
    body["degraded"] = health.degraded
    body["work"] = health.work and asdict(health.work)
    body["processes"] = health.processes and [asdict(process) for process in health.processes]
    body["cluster"] = health.cluster and asdict(health.cluster)
    if health.cluster and not has_owners:
        body["cluster"]["queue_by_owner"] = None
    body["storage"] = health.storage and asdict(health.storage)
    body["mcp_servers"] = health.mcp
    return body
