"""The bridge as a child process: started, watched, and started again when it dies or hangs."""

import asyncio
import json
import logging
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from gateway_app.config.whatsapp import PREFIX_VARIABLE, WhatsAppConfig

logger = logging.getLogger(__name__)

PROGRAM = Path(__file__).with_name("bridge.mjs")
START_SECS = 30.0
STOP_SECS = 5.0
READ_BYTES = 65_536
FIRST_PAUSE_SECS = 0.5  # between two starts, doubled each time
MAX_PAUSE_SECS = 30.0
STABLE_SECS = 60.0  # a bridge that ran this long starts again at once
OUR_VARIABLES = (
    "WHATSAPP_BRIDGE_SECRET",
    "WHATSAPP_BRIDGE_FOLDER",
    "WHATSAPP_TRANSPORT_MODULE",
    "WHATSAPP_PREFIX_IN",
    PREFIX_VARIABLE,
)
# Secrets of this server that the bridge and the package in it have no use for.
HIDDEN_PREFIXES = ("HERMES_", "API_SERVER_", "DATABASE_", "REDIS_", "WHATSAPP_A", "WHATSAPP_V")
HIDDEN_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


class BridgeMissing(Exception):
    """The bridge can't be started at all."""


def child_environment(
    config: WhatsAppConfig, folder: Path, secret: str, inherited: dict[str, str]
) -> dict[str, str]:
    """An absent prefix, an empty one and a text are three different things for the bridge."""
    environment = {}
    for name, value in inherited.items():
        is_secret = any(word in name.upper() for word in HIDDEN_WORDS)
        if not is_secret and name not in OUR_VARIABLES and not name.startswith(HIDDEN_PREFIXES):
            environment[name] = value
    environment["WHATSAPP_BRIDGE_SECRET"] = secret
    environment["WHATSAPP_BRIDGE_FOLDER"] = str(folder)
    environment["WHATSAPP_PREFIX_IN"] = config.prefix_in
    if config.transport_module:
        environment["WHATSAPP_TRANSPORT_MODULE"] = config.transport_module
    if config.reply_prefix is not None:
        environment[PREFIX_VARIABLE] = config.reply_prefix
    return environment


class BridgeProcess:
    """``url`` and ``secret`` are those of the running bridge; ``url`` is empty while none runs."""

    def __init__(self, config: WhatsAppConfig, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self._child: asyncio.subprocess.Process | None = None
        self._draining: asyncio.Task[None] | None = None  # of its output
        self._pause_secs = FIRST_PAUSE_SECS
        self.secret = ""
        self.url = ""
        self.error = ""
        self.starts = 0

    async def run_forever(self) -> None:
        try:
            while True:
                await self._run_once()
                await asyncio.sleep(self._pause_secs)
                self._pause_secs = min(self._pause_secs * 2, MAX_PAUSE_SECS)
        finally:
            await self.stop()

    async def _run_once(self) -> None:
        began = asyncio.get_running_loop().time()
        try:
            await self._start()
            assert self._child is not None
            code = await self._child.wait()
            self.error = f"The bridge ended with code {code} and is started again."
        except (OSError, TimeoutError, ValueError) as error:
            self.error = f"The bridge did not start: {error or type(error).__name__}."
            await self.stop()
        logger.warning("%s", self.error)
        self.url = ""
        if asyncio.get_running_loop().time() - began > STABLE_SECS:
            self._pause_secs = FIRST_PAUSE_SECS

    async def _start(self) -> None:
        node = shutil.which("node")
        if node is None:
            raise BridgeMissing("Node.js is not on the PATH: install it (apt-get install nodejs).")
        self.secret = secrets.token_urlsafe(32)
        environment = child_environment(self._config, self._folder, self.secret, dict(os.environ))
        self._child = await asyncio.create_subprocess_exec(
            node,
            str(PROGRAM),
            stdin=asyncio.subprocess.PIPE,  # the bridge ends when it closes
            stdout=asyncio.subprocess.PIPE,
            env=environment,
        )
        assert self._child.stdout is not None
        async with asyncio.timeout(START_SECS):
            port = await _read_port(self._child.stdout)
        self.url = f"http://127.0.0.1:{port}"
        self.starts += 1
        self._draining = asyncio.create_task(_drain(self._child.stdout))

    def kill(self, reason: str) -> None:
        """For a bridge that hangs; it is started again."""
        if self._child is not None and self._child.returncode is None:
            logger.warning("The bridge is ended: %s", reason)
            self.url = ""
            self._child.kill()

    async def stop(self) -> None:
        child = self._child
        self._child = None
        self.url = ""
        if child is None or child.returncode is not None:
            return
        assert child.stdin is not None
        child.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECS):
                await child.wait()
                return
        child.kill()
        await child.wait()


async def _read_port(output: asyncio.StreamReader) -> int:
    """The transport's package may print lines of its own first."""
    async for line in output:
        with suppress(ValueError, TypeError, KeyError):
            return int(json.loads(line)["port"])
    raise ValueError("it named no port")


async def _drain(output: asyncio.StreamReader) -> None:
    """A full pipe would stop the bridge. The lines may have keys of the account: none is kept."""
    while await output.read(READ_BYTES):
        pass
