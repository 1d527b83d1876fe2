"""What ``/api/status`` says: the gateway of this host, or the one elsewhere."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from gateway_app.operations import health
from gateway_app.operations.database_probe import TROUBLE, ask
from gateway_app.operations.monitoring.remote import NOBODY, Remote
from gateway_app.runtime.processes import HOST
from responses_app.models import Session

ACTIVE_SPAN = timedelta(minutes=5)
PRIVATE_FIELDS = ("hermes_home", "config_path", "gateway_pid", "gateway_health_url")


@dataclass(frozen=True)
class Local:
    """The newest process of this host; None where nothing is known of any."""

    process: health.Process | None
    is_alive: bool

    @property
    def needs_probe(self) -> bool:
        return not self.is_alive and bool(settings.GATEWAY_HEALTH_URL)


def local(processes: list[health.Process] | None) -> Local:
    here = [process for process in processes or [] if process.host == HOST]
    alive = [process for process in here if process.is_alive_here]
    return Local(next(iter(alive or here), None), bool(alive))


def look() -> tuple[Local, int | None]:
    """The gateway of this host, and how many sessions were used lately, if the database tells."""
    try:
        processes, active = ask(_read)
    except TROUBLE:
        return local(None), None
    return local(processes), active


def _read() -> tuple[list[health.Process], int]:
    active = Session.objects.filter(last_active_at__gte=timezone.now() - ACTIVE_SPAN)
    return health.processes(), active.count()


def status(found: Local, remote: Remote, active_sessions: int | None) -> dict[str, Any]:
    return {
        "version": settings.HERMES_VERSION,
        "hermes_home": str(settings.HERMES_HOME),
        "config_path": str(settings.HERMES_HOME / "config.yaml"),
        "active_sessions": active_sessions,
        **gateway(found, remote),
    }


def public_status(body: dict[str, Any]) -> dict[str, Any]:
    """Without paths, pids and addresses; what another server sends may hold any of them."""
    public = {name: value for name, value in body.items() if name not in PRIVATE_FIELDS}
    if body["gateway_is_remote"]:
        public |= {"gateway_platforms": {}, "gateway_exit_reason": None}
    return public


def gateway(found: Local, remote: Remote = NOBODY) -> dict[str, Any]:
    seen = _remote_gateway(remote.body or {}) if remote.is_alive else _local_gateway(found)
    return {"gateway_health_url": settings.GATEWAY_HEALTH_URL or None, **seen}


def _local_gateway(found: Local) -> dict[str, Any]:
    process = found.process
    return {
        "gateway_running": found.is_alive,
        "gateway_is_remote": False,
        "gateway_pid": process.pid if process and found.is_alive else None,
        "gateway_state": health.living_state() if found.is_alive else (process and "stopped"),
        "gateway_platforms": health.PLATFORMS if found.is_alive else {},
        "gateway_exit_reason": (process.exit_reason or None)
        if process and not found.is_alive
        else None,
        "gateway_updated_at": process.heartbeat_at.isoformat() if process else None,
    }


def _remote_gateway(body: dict[str, Any]) -> dict[str, Any]:
    """Whatever another server says is only shown; a plain ``/health`` says next to nothing."""
    pid, state, platforms = body.get("pid"), body.get("gateway_state"), body.get("platforms")
    return {
        "gateway_running": True,
        "gateway_is_remote": True,
        "gateway_pid": pid if isinstance(pid, int) else None,
        "gateway_state": state if isinstance(state, str) and state != "stopped" else "running",
        "gateway_platforms": platforms if isinstance(platforms, dict) else {},
        "gateway_exit_reason": _text(body.get("exit_reason")),
        "gateway_updated_at": _text(body.get("updated_at")),
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
