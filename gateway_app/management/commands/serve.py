import logging
from argparse import ArgumentParser
from functools import partial
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils.module_loading import import_string

from gateway_app.management.serving import check_start, run_server
from gateway_app.operations.first_start import ensure_admin, greeting, warning
from gateway_app.operations.model_banner import model_banner
from gateway_app.operations.model_probe import probe_models
from responses_app.management.examples import add_examples

logger = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Serve the API and the pages; without Redis, run responses in the same process."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(parser, "serve")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.HERMES_DEGRADED:
            call_command(
                "migrate", verbosity=0
            )  # the operator could not migrate a temporary database
            logger.error(warning())
        check_start()
        is_first_start = ensure_admin()
        # Output that is no terminal may be a journal, which other users can read.
        shows_secrets = is_first_start and self.stdout.isatty()
        run_server(
            import_string(settings.ASGI_APPLICATION),
            port=settings.API_SERVER_PORT,
            port_setting="API_SERVER_PORT",
            on_listening=partial(self._greet, model_banner(), shows_secrets=shows_secrets),
            stdout=self.stdout,
        )

    def _greet(self, models: str, *, shows_secrets: bool) -> None:
        self.stdout.write(greeting(models, shows_secrets=shows_secrets))
        self.stdout.flush()
        if settings.HERMES_PROBES_MODELS:
            probe_models()
