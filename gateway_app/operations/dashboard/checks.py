"""The checks of ``/health/detailed`` in words: what is wrong, since when, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from gateway_app.operations.health import Health
from gateway_app.operations.health_checks import OK


@dataclass(frozen=True)
class Words:
    title: str
    problem: str  # with the findings of the check
    remedy: str


@dataclass(frozen=True)
class Finding:
    name: str  # as in /health/detailed
    title: str
    is_ok: bool
    problem: str = ""
    remedy: str = ""
    since: datetime | None = None


WORDS = {
    "state_db": Words(
        "Database",
        "It can't be read: {error}.",
        "See that the database of DATABASE_URL runs and accepts connections.",
    ),
    "home": Words(
        "Home folder",
        "The server stores everything in a temporary folder: {error}.",
        "Make HERMES_HOME writable, then start the server again.",
    ),
    "layer": Words(
        "Channel layer",
        "It delivers no messages: {error}. Readers in other processes wait up to a second longer.",
        "See that the Redis server of REDIS_URL runs.",
    ),
    "model": Words(
        "Model",
        "The last request to it failed: {error}.",
        "manage.py doctor checks its address and its key.",
    ),
    "disk": Words(
        "Disk",
        "{used_percent} % of it is used.",
        "Free some space; manage.py prune_responses deletes old responses.",
    ),
    "gateway": Words(
        "Gateway",
        "No process takes requests: {running} run, and {silent} of them have no heartbeat.",
        "Start the server: make run, or manage.py serve.",
    ),
    "workers": Words(
        "Workers",
        "No worker takes turns: {live} are alive, and {draining} of these drain.",
        "Start one: manage.py runworker generate.",
    ),
    "secrets": Words(
        "Secrets",
        "Processes with other secrets: {disagreeing}.",
        "Give all processes the same HERMES_SECRET_KEY and API_SERVER_KEY.",
    ),
    "background_queues": Words(
        "Queue",
        "Of {queued} queued responses, one that could run still waits.",
        "Start another process, or raise HERMES_MAX_CONCURRENT.",
    ),
    "writer": Words(
        "Event log",
        "A write has waited for {lag_secs} s; {pending_bytes} bytes wait.",
        "Look at the load of the database and of its disk.",
    ),
    "log_formats": Words(
        "Log formats",
        "A newer version of the server has started {newer}.",
        "Start that version again: these responses wait for it.",
    ),
    "terminal": Words("Terminal", "{error}", "{remedy}"),
    "mcp": Words(
        "MCP servers",
        "At least one of {servers} is down.",
        "Its error is in the list of MCP servers above.",
    ),
    "platforms": Words(
        "Messaging platforms",
        "Not connected, or with messages that failed: {troubled}.",
        "The page of the platforms has the errors and the dead letters.",
    ),
}


def findings(health: Health) -> list[Finding]:
    """Those that are not ok come first."""
    found = [_finding(name, check, health) for name, check in health.checks.items()]
    return sorted(found, key=_is_ok)


def _is_ok(finding: Finding) -> bool:
    return finding.is_ok


def _finding(name: str, check: Mapping[str, Any], health: Health) -> Finding:
    words = WORDS[name]
    if check["status"] == OK:
        return Finding(name, words.title, True)
    shown = {field: _in_words(value) for field, value in check.items()}
    problem = words.problem.format_map(shown)
    remedy = words.remedy.format_map(shown)
    return Finding(name, words.title, False, problem, remedy, _since(name, check, health))


def _in_words(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, list):
        return ", ".join(str(each) for each in value) or "none"
    return str(value).rstrip(".")


def _since(name: str, check: Mapping[str, Any], health: Health) -> datetime | None:
    if name == "model" and check["asked_at"]:
        return parse_datetime(check["asked_at"])
    if name == "writer":
        return timezone.now() - timedelta(seconds=check["lag_secs"])
    if name == "background_queues" and health.work is not None:
        return timezone.now() - timedelta(seconds=health.work.oldest_ready_secs or 0)
    if name == "platforms":
        errors = [report.last_error_at for report in health.platforms if not report.is_ok]
        return min((at for at in errors if at is not None), default=None)
    return None
