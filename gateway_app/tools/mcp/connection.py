"""One MCP server, kept connected: its tools as they are now, and calls to them."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
from mcp import Client, MCPError, types
from mcp.client import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from pydantic import ValidationError

from gateway_app.agent.tools import Approver, AsksApproval, Tool, ToolContext, ToolOutput
from gateway_app.config.mcp import McpServer
from gateway_app.tools.mcp.names import public_name
from gateway_app.tools.mcp.results import as_text, images_in, progress_text
from gateway_app.tools.mcp.transport import Transport, open_transport, redacted

logger = logging.getLogger(__name__)

CONNECTING, READY, DOWN = "connecting", "ready", "down"
GATHER_SECS = 0.05  # servers announce ten new tools with ten notifications
CLOSE_SECS = 3.0  # a server that does not close must not delay the end of this process
MAX_PAGES = 100  # a server whose last page names a next one would be listed forever


@dataclass(frozen=True)
class Limits:
    connect_secs: float = 60  # npx and uvx download the server first
    list_secs: float = 30
    # Finds changes without a notification: a restarted HTTP server, a lost list_changed.
    refresh_secs: float = 60
    first_retry_secs: float = 1
    last_retry_secs: float = 60


class Connection:
    """The task that holds the connection is the only one to open and close it.

    The ``mcp`` package uses scopes of anyio, which the task that entered them must leave.
    """

    def __init__(self, server: McpServer, limits: Limits, version: str) -> None:
        self.server = server
        self.state = CONNECTING
        self.error = ""
        self.tools: tuple[Tool, ...] = ()
        self._limits = limits
        self._info = types.Implementation(name="hermes-site", version=version)
        self._mode = "auto"
        self._client: Client | None = None
        self._transport: Transport | None = None
        self._calls = 0
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._scope: anyio.CancelScope | None = None
        self._task: asyncio.Task[None] | None = None

    # -- life ---------------------------------------------------------------------------
    def start(self) -> None:
        self._scope = anyio.CancelScope()
        self._task = asyncio.get_running_loop().create_task(
            self._run(self._scope), name=f"mcp {self.server.label}"
        )

    async def stop(self) -> None:
        """Close the connection, by force if need be; afterwards no process of the server is left."""
        if self._scope is None or self._task is None:
            return
        self._closing.set()
        self._wake.set()
        if self._transport is not None:
            # A cancellation while the child starts may leave it behind.
            await self._transport.opened.wait()
        if self._client is None:
            self._scope.cancel()
        await asyncio.wait({self._task}, timeout=CLOSE_SECS)
        self._scope.cancel()
        await asyncio.wait({self._task})

    async def _run(self, scope: anyio.CancelScope) -> None:
        delay = self._limits.first_retry_secs
        task = asyncio.current_task()
        assert task is not None
        with scope:
            # A cancellation from outside is swallowed where it meets one of anyio's own; its count stays.
            while not self._closing.is_set() and not task.cancelling():
                started = time.monotonic()
                await self._attempt()
                if time.monotonic() - started > self._limits.last_retry_secs:
                    delay = self._limits.first_retry_secs
                with anyio.move_on_after(delay):
                    await self._closing.wait()
                delay = min(delay * 2, self._limits.last_retry_secs)

    async def _attempt(self) -> None:
        self.state = CONNECTING
        self._transport = transport = Transport(self.server, on_end=self._forget)
        try:
            await self._live(transport)
        except Exception as error:  # whatever a server does costs its own tools and nothing else
            self._report_down(_reason(error, transport), transport.error_output)
            if self.server.command and transport.has_ended and not transport.was_ready:
                # Some servers exit at the newer protocol's first question instead of refusing it.
                self._mode = "legacy" if self._mode == "auto" else "auto"
        finally:
            self.state = DOWN
            transport.opened.set()

    def _forget(self) -> None:
        self._client, self.tools = None, ()
        self.state = DOWN
        self._wake.set()

    async def _live(self, transport: Transport) -> None:
        with anyio.CancelScope() as limit:
            client = Client(
                self._open(transport, limit),
                mode=self._mode,
                message_handler=partial(self._receive, transport),
                client_info=self._info,
                cache=None,
            )
            async with client:
                tools = await self._list(client)
                limit.deadline = math.inf
                try:
                    self._become_ready(client, transport, tools)
                    await self._follow(client, transport)
                finally:
                    self._forget()
                    limit.deadline = anyio.current_time() + CLOSE_SECS
        if limit.cancelled_caught:
            raise TimeoutError("it does not answer")

    @asynccontextmanager
    async def _open(self, transport: Transport, limit: anyio.CancelScope) -> AsyncIterator[Any]:
        async with open_transport(transport) as streams:
            transport.opened.set()
            limit.deadline = anyio.current_time() + self._limits.connect_secs
            yield streams

    def _become_ready(self, client: Client, transport: Transport, tools: tuple[Tool, ...]) -> None:
        self._client, self.tools = client, tools
        self.state, self.error = READY, ""
        transport.was_ready = True
        transport.error_output = ""
        logger.info("MCP server %s is ready with %d tools", self.server.label, len(tools))

    def _report_down(self, reason: str, error_output: str) -> None:
        """Error output may quote the arguments of a call: health shows it, the log does not."""
        error = reason
        if error_output:
            error = f"{reason} (its last error output: {error_output})"
        if error != self.error:  # the same at every retry would fill the log
            logger.warning("MCP server %s is down: %s", self.server.label, reason)
        self.error = error

    # -- what it offers -----------------------------------------------------------------
    async def _follow(self, client: Client, transport: Transport) -> None:
        """Keep the tools up to date until the connection ends or is closed."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._subscribe, client)
            while not self._closing.is_set():
                with anyio.move_on_after(self._limits.refresh_secs):
                    await self._wake.wait()
                    await anyio.sleep(GATHER_SECS)
                self._wake.clear()
                if transport.has_ended:
                    raise ConnectionError("the connection ended")
                if not self._closing.is_set():
                    await self._refresh(client)
            tasks.cancel_scope.cancel()

    async def _refresh(self, client: Client) -> None:
        try:
            with anyio.fail_after(self._limits.list_secs):
                self.tools = await self._list(client)
        except TimeoutError:
            if not self._calls:  # many servers do one thing at a time, and this one runs a call
                raise

    async def _subscribe(self, client: Client) -> None:
        """The newer protocol sends notifications only to subscribers."""
        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    self._wake.set()  # the list may have changed before the subscription
                    async for _ in events:
                        self._wake.set()
            except ListenNotSupportedError:
                return
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                cause = type(error).__name__
                logger.debug("MCP server %s: not listening (%s)", self.server.label, cause)
            self._wake.set()  # it may have gone
            await anyio.sleep(self._limits.refresh_secs)

    async def _receive(self, transport: Transport, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._wake.set()
        elif isinstance(message, Exception) and not transport.is_garbled:
            transport.is_garbled = True
            logger.warning(
                "MCP server %s sends data that is no message of the protocol", self.server.label
            )

    async def _list(self, client: Client) -> tuple[Tool, ...]:
        found: dict[str, Tool] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            try:
                page = await client.list_tools(cursor=cursor)
            except MCPError as error:
                if error.code == types.METHOD_NOT_FOUND and not found:
                    return ()  # it offers other things than tools
                raise
            for listed in page.tools:
                tool = self._tool(listed)
                found.setdefault(tool.name, tool)
            cursor = page.next_cursor
            if not cursor:
                return tuple(found.values())
        logger.warning("MCP server %s lists too many pages of tools", self.server.label)
        return tuple(found.values())

    def _tool(self, listed: types.Tool) -> Tool:
        hints = listed.annotations
        is_read_only = hints is not None and bool(hints.read_only_hint)
        is_idempotent = hints is not None and bool(hints.idempotent_hint)
        asks_approval: AsksApproval | None = self._asks_approval
        if self.server.approval == "none":
            asks_approval = None
        approver: Approver = "client" if self.server.approval == "client" else "operator"
        return Tool(
            name=public_name(self.server.label, listed.name),
            description=listed.description or listed.title or "",
            parameters=listed.input_schema,
            run=partial(self.call, listed.name),
            is_replay_safe=is_read_only or is_idempotent,
            is_read_only=is_read_only,
            asks_approval=asks_approval,
            approver=approver,
            time_limit_secs=self.server.timeout_secs,
            server_label=self.server.label,
        )

    def _asks_approval(self, arguments: dict[str, Any]) -> str:
        return f"Every call of the MCP server {self.server.label} needs approval."

    # -- calls --------------------------------------------------------------------------
    async def call(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Cancelling the caller's task cancels the request at the server too."""
        client, label = self._client, self.server.label
        if client is None:
            error = self.error or "it is starting"
            raise RuntimeError(f"The MCP server {label} is not connected: {error}.")

        async def report(progress: float, total: float | None, message: str | None) -> None:
            context.report(progress_text(progress, total, message))

        self._calls += 1
        try:
            result = await client.call_tool(tool, arguments, self.server.timeout_secs, report)
        except MCPError as error:
            self._wake.set()  # it may have gone
            raise RuntimeError(self._failure(error)) from error
        except ValidationError as error:
            raise RuntimeError(f"The answer of the MCP server {label} is no result.") from error
        finally:
            self._calls -= 1
        text = as_text(result)
        if result.is_error:
            raise RuntimeError(
                text or f"The tool {tool} of the MCP server {label} failed without a reason."
            )
        return ToolOutput(text, images_in(result))

    def _failure(self, error: MCPError) -> str:
        label = self.server.label
        if error.code == types.CONNECTION_CLOSED:
            effect = "whether the call had an effect is unknown"
            return f"The MCP server {label} went away during the call; {effect}."
        if error.code == types.REQUEST_TIMEOUT:
            return f"The MCP server {label} did not answer within {self.server.timeout_secs:g} s."
        return f"The MCP server {label} refused the call: {redacted(self.server, error.message)}"


def _reason(error: BaseException, transport: Transport) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return f"there is no command {transport.server.command}"
    return redacted(transport.server, str(error)) or type(error).__name__
