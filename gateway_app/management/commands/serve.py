import logging
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.utils.module_loading import import_string

from gateway_app.operations.first_start import ensure_admin, greeting, warning
from gateway_app.operations.model_banner import ignored_keys_warning, model_banner
from gateway_app.operations.model_probe import probe_models
from gateway_app.runtime.signals import exit_now
from gateway_app.server import GatewayServer, endpoint
from gateway_app.server.limits import needed_files, raise_open_files, reachable_files

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Serve the API and the pages, and run responses, in one process."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.HERMES_DEGRADED:
            call_command(
                "migrate", verbosity=0
            )  # the operator could not migrate a temporary database
            logger.error(warning())
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise CommandError(
                "The database is not up to date; run 'python manage.py migrate' first."
            )
        self._make_room_for_connections()
        is_first_start = ensure_admin()
        if settings.HERMES_IGNORED_KEYS:
            logger.warning(ignored_keys_warning())
        if settings.HERMES_CONFIG_NOTICE:
            logger.warning(settings.HERMES_CONFIG_NOTICE)
        models = model_banner()
        connection.close()
        server = GatewayServer(
            import_string(settings.ASGI_APPLICATION),
            endpoints=[endpoint(settings.API_SERVER_HOST, settings.API_SERVER_PORT)],
            server_name="hermes-site",
            websocket_max_message_size=settings.MAX_BODY_BYTES,
            websocket_max_frame_size=settings.MAX_BODY_BYTES,
        )
        # Output that is no terminal may be a journal, which other users can read.
        shows_secrets = is_first_start and self.stdout.isatty()
        server.on_listening = partial(self._greet, models, shows_secrets=shows_secrets)
        server.run()
        if server.listen_failure:
            # Twisted repeats the address before the number of the error.
            reason = server.listen_failure.rpartition("] ")[2].rstrip(".")
            raise CommandError(
                f"Cannot listen on {settings.API_SERVER_HOST}:{settings.API_SERVER_PORT}: {reason}. "
                "Is another server running? API_SERVER_PORT chooses another port."
            )
        # Everything is stored and every client has its last event. A normal exit would wait for
        # threads and free all memory, which takes too long on a busy machine.
        self.stdout.flush()
        exit_now(0)

    def _greet(self, models: str, *, shows_secrets: bool) -> None:
        self.stdout.write(greeting(models, shows_secrets=shows_secrets))
        self.stdout.flush()
        if settings.HERMES_PROBES_MODELS:
            probe_models()

    def _make_room_for_connections(self) -> None:
        raise_open_files()
        if reachable_files() < needed_files():
            logger.warning(
                "%d open files are allowed, and %d may be needed. "
                "Raise the hard limit (LimitNOFILE, ulimit -Hn), or lower HERMES_MAX_CONNECTIONS.",
                reachable_files(),
                needed_files(),
            )
