"""What ``serve`` and ``runworker`` have in common: the checks before the start, and the server."""

import errno
import logging
import os
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, OutputWrapper
from django.db import connection

from gateway_app.management.migrations import is_up_to_date
from gateway_app.operations.model_banner import ignored_keys_warning
from gateway_app.runtime.roles import Role
from gateway_app.runtime.shared_secrets import disagreement, find_disagreeing
from gateway_app.runtime.shared_settings import find_differing
from gateway_app.runtime.signals import exit_now
from gateway_app.server.daphne_server import GatewayServer, endpoint
from gateway_app.server.limits import needed_files, raise_open_files, reachable_files

logger = logging.getLogger(__name__)

SHOWN = 5  # processes in one line of the log


def check_start() -> None:
    """Refuse an old database; warn about what the configuration does not do."""
    if not is_up_to_date():
        raise CommandError("The database is not up to date; run 'python manage.py migrate' first.")
    disagreeing = find_disagreeing()
    if disagreeing is not None:
        raise CommandError(disagreement(disagreeing))
    differing = find_differing()
    if differing:
        logger.warning(
            "Processes with other settings run: %s. Give all the same models, config.yaml and leases.",
            ", ".join(map(str, differing[:SHOWN])),
        )
    raise_open_files()
    if reachable_files() < needed_files():
        logger.warning(
            "%d open files are allowed, and %d may be needed. "
            "Raise the hard limit (LimitNOFILE, ulimit -Hn), or lower HERMES_MAX_CONNECTIONS.",
            reachable_files(),
            needed_files(),
        )
    if settings.HERMES_IGNORED_KEYS:
        logger.warning(ignored_keys_warning())
    if settings.HERMES_CONFIG_NOTICE:
        logger.warning(settings.HERMES_CONFIG_NOTICE)


def run_server(
    application: Any,
    *,
    port: int,
    port_setting: str,
    on_listening: Callable[[], None],
    stdout: OutputWrapper,
    role: Role | None = None,
) -> None:
    """Serve until a signal comes; does not return."""
    connection.close()
    server = GatewayServer(
        application,
        endpoints=[endpoint(settings.API_SERVER_HOST, port)],
        server_name="hermes-site",
        websocket_max_message_size=settings.MAX_BODY_BYTES,
        websocket_max_frame_size=settings.MAX_BODY_BYTES,
    )
    server.role = role
    server.on_listening = on_listening
    server.run()
    if server.listen_failure:
        # Twisted repeats the address before the number of the error.
        reason = server.listen_failure.rpartition("] ")[2].rstrip(".")
        raise CommandError(
            f"Cannot listen on {settings.API_SERVER_HOST}:{port}: {reason}. "
            f"{listening_remedy(reason, port_setting)}"
        )
    # Everything is stored and every client has its last event. A normal exit would wait for
    # threads and free all memory, which takes too long on a busy machine.
    stdout.flush()
    exit_now(0)


def listening_remedy(reason: str, port_setting: str) -> str:
    """What to do about a reason of the operating system."""
    if reason == os.strerror(errno.EADDRINUSE):
        return f"Is another server running? {port_setting} chooses another port."
    if reason == os.strerror(errno.EACCES):
        return f"Ports below 1024 need more rights. {port_setting} chooses another port."
    return "API_SERVER_HOST must be an address of this machine."
