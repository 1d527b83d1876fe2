import asyncio
import signal
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from gateway_app.platforms.pairing_code import terminal_lines
from gateway_app.platforms.polling import run_platform
from gateway_app.platforms.registry import adapters
from gateway_app.platforms.single_process import AlreadyRunning, only_process
from gateway_app.platforms.whatsapp.bridge_process import BridgeMissing
from gateway_app.runtime.signals import exit_now
from responses_app.management.examples import add_examples


class Command(BaseCommand):
    help = "Run the connection to a messaging platform that has a process of its own."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(parser, "runplatform whatsapp")
        names = ", ".join(settings.HERMES_PLATFORM_ADAPTERS)
        parser.add_argument("platform", help=f"one of {names}")

    def handle(self, *args: Any, platform: str, **options: Any) -> None:
        adapter = adapters().get(platform)
        if adapter is None:
            raise CommandError(
                f"{platform} is not enabled in config.yaml; docs/platforms.md has the steps."
            )
        if not adapter.is_polled:
            raise CommandError(f"{platform} needs no process of its own: manage.py serve runs it.")
        try:
            with only_process(Path(settings.HERMES_HOME) / "platforms" / platform):
                asyncio.run(self._run(platform))
        except (AlreadyRunning, BridgeMissing) as error:
            raise CommandError(str(error)) from error
        self.stdout.flush()
        exit_now(0)

    async def _run(self, platform: str) -> None:
        stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopping.set)
        self.stdout.write(f"Running {platform}. Ctrl-C ends it.")
        await run_platform(adapters()[platform], self._show_code, stopping)

    def _show_code(self, code: str) -> None:
        self.stdout.write("Scan this code: WhatsApp > Settings > Linked devices > Link a device.")
        for line in terminal_lines(code):
            self.stdout.write(line)
        self.stdout.flush()
