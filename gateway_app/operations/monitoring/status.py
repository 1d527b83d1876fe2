"""The body of ``/api/status``: the gateway of this host, or one on another host."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from gateway_app.config.versions import NEWEST, config_version
from gateway_app.operations import health
from gateway_app.operations.database_probe import TROUBLE, ask
from gateway_app.operations.monitoring.remote import UNREACHABLE, Remote
from gateway_app.platforms.states import PlatformReport, platform_reports
from gateway_app.runtime.workspaces import HOST
from responses_app.models import Session

ACTIVE_SPAN = timedelta(minutes=5)
PRIVATE_FIELDS = (
    "hermes_home",
    "config_path",
    "gateway_pid",
    "gateway_health_url",
    "provider",
    "model",
)


@dataclass(frozen=True)
class Local:
    """The newest process of this host; None where none is known."""

    process: health.Process | None
    is_alive: bool
    platforms: tuple[PlatformReport, ...] = ()

    @property
    def needs_probe(self) -> bool:
        return not self.is_alive and bool(settings.GATEWAY_HEALTH_URL)


def local(processes: list[health.Process] | None) -> Local:
    gateways = [process for process in processes or [] if process.is_gateway]
    here = [process for process in gateways if process.host == HOST]
    for process in here:
        if process.is_alive_here:
            return Local(process, True)
    if here:
        return Local(here[0], False)
    return Local(None, False)


def look() -> tuple[Local, int | None]:
    """The gateway of this host and the number of recent sessions, where the database answers."""
    try:
        found, active = ask(_read)
    except TROUBLE:
        return local(None), None
    return found, active


def _read() -> tuple[Local, int]:
    active = Session.objects.filter(last_active_at__gte=timezone.now() - ACTIVE_SPAN)
    found = replace(local(health.processes()), platforms=tuple(platform_reports()))
    return found, active.count()


def status(found: Local, remote: Remote, active_sessions: int | None) -> dict[str, Any]:
    body = {
        "version": settings.HERMES_VERSION,
        "hermes_home": str(settings.HERMES_HOME),
        "config_path": str(settings.HERMES_HOME / "config.yaml"),
        "config_version": config_version(settings.HERMES_CONFIG),
        "latest_config_version": NEWEST,
        "active_sessions": active_sessions,
        "provider": settings.HERMES_MODELS[0]["provider"],
        "model": settings.HERMES_MODELS[0]["model"] or None,
    }
    return body | gateway(found, remote)


def public_status(body: dict[str, Any]) -> dict[str, Any]:
    """Without paths, pids and addresses; the body of another server may contain any of them."""
    public = {name: value for name, value in body.items() if name not in PRIVATE_FIELDS}
    if body["gateway_is_remote"]:
        return public | {"gateway_platforms": {}, "gateway_exit_reason": None}
    platforms = {}
    for name, platform in body["gateway_platforms"].items():
        platforms[name] = {"state": platform["state"]}
    return public | {"gateway_platforms": platforms}


def gateway(found: Local, remote: Remote = UNREACHABLE) -> dict[str, Any]:
    fields = _local_gateway(found)
    if remote.is_alive:
        fields = _remote_gateway(remote.body or {})
    return {"gateway_health_url": settings.GATEWAY_HEALTH_URL or None} | fields


def _local_gateway(found: Local) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "gateway_running": found.is_alive,
        "gateway_is_remote": False,
        "gateway_pid": None,
        "gateway_state": None,
        "gateway_platforms": {},
        "gateway_exit_reason": None,
        "gateway_updated_at": None,
    }
    process = found.process
    if process is None:
        return fields
    fields["gateway_updated_at"] = process.heartbeat_at.isoformat()
    if found.is_alive:
        fields["gateway_pid"] = process.pid
        fields["gateway_state"] = health.living_state()
        fields["gateway_platforms"] = dict(health.API_SERVER)
        for report in found.platforms:
            fields["gateway_platforms"][report.name] = report.details()
    else:
        fields["gateway_state"] = "stopped"
        fields["gateway_exit_reason"] = process.exit_reason or None
    return fields


def _remote_gateway(body: dict[str, Any]) -> dict[str, Any]:
    """Another server may send anything, and a plain ``/health`` has hardly any of these fields."""
    state = _typed(body, "gateway_state", str)
    if state is None or state == "stopped":
        state = "running"
    return {
        "gateway_running": True,
        "gateway_is_remote": True,
        "gateway_pid": _typed(body, "pid", int),
        "gateway_state": state,
        "gateway_platforms": _typed(body, "platforms", dict) or {},
        "gateway_exit_reason": _typed(body, "exit_reason", str),
        "gateway_updated_at": _typed(body, "updated_at", str),
    }


def _typed(body: dict[str, Any], name: str, kind: type) -> Any:
    value = body.get(name)
    if not isinstance(value, kind):
        return None
    return value
