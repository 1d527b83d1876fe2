"""The body of ``/health/detailed``: Hermes' own fields, and the details for those who may read them."""

import os
from dataclasses import asdict
from typing import Any

from django.conf import settings

from gateway_app.models import ProcessState
from gateway_app.operations.health import PLATFORMS, Health, living_state

PLATFORM = "hermes-agent"


def public_fields(health: Health) -> dict[str, Any]:
    """Nothing of paths, hosts or checks: commands of the agent can read this as well."""
    running = health.running_processes
    ended = [process for process in health.processes or [] if process.state != ProcessState.RUNNING]
    newest = max((process.heartbeat_at for process in running), default=None)
    stopped = "stopped" if ended else None
    exit_reason = ended[0].exit_reason if ended and not running else ""
    return {
        "status": health.status,
        "platform": PLATFORM,
        "gateway_state": living_state() if running else stopped,
        "platforms": PLATFORMS if running else {},
        "active_agents": health.work.running if health.work else 0,
        "exit_reason": exit_reason or None,
        "updated_at": newest and newest.isoformat(),
        "pid": None,
    }


def all_fields(health: Health) -> dict[str, Any]:
    return {
        **public_fields(health),
        "version": settings.HERMES_VERSION,
        "pid": os.getpid(),
        "readiness": {"status": health.status, "checks": health.checks},
        "degraded": health.degraded,
        "work": health.work and asdict(health.work),
        "processes": health.processes and [asdict(process) for process in health.processes],
        "storage": health.storage and asdict(health.storage),
        "mcp_servers": health.mcp,
    }
