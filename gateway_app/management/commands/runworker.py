from argparse import ArgumentParser
from functools import partial
from typing import Any

from channels.management.commands import runworker
from django.conf import settings
from django.core.management.base import CommandError
from django.utils.module_loading import import_string

from gateway_app.config.network import http_url
from gateway_app.management.serving import check_start, run_server
from gateway_app.operations.model_banner import model_banner
from gateway_app.runtime.cluster_dispatch import QUEUE
from gateway_app.runtime.dispatch import CHANNEL
from gateway_app.runtime.roles import Role
from gateway_app.server.worker_app import WorkerApplication
from responses_app.management.examples import add_examples


class Command(runworker.Command):
    """Channels' worker handles one message at a time, and loses it where it fails: ours claims turns."""

    help = "Run responses that web processes have admitted; needs REDIS_URL. Channel: generate."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        add_examples(parser, "runworker generate")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["channels"] != [CHANNEL]:
            raise CommandError(f"The only channel is {CHANNEL}: manage.py runworker {CHANNEL}")
        if options["layer"] not in ("default", QUEUE):
            raise CommandError(f"--layer must be {QUEUE}, which is the default.")
        if not settings.REDIS_URL:
            raise CommandError("A worker needs REDIS_URL: web processes send it their turns there.")
        check_start()
        run_server(
            WorkerApplication(import_string(settings.ASGI_APPLICATION)),
            port=settings.HERMES_WORKER_PORT,
            port_setting="HERMES_WORKER_PORT",
            on_listening=partial(self._greet, model_banner()),
            stdout=self.stdout,
            role=Role.WORKER,
        )

    def _greet(self, models: str) -> None:
        address = http_url(settings.API_SERVER_HOST, settings.HERMES_WORKER_PORT)
        self.stdout.write(f"A worker of Hermes Site {settings.HERMES_VERSION}, at {address}/health")
        self.stdout.write(models)
