"""MCP servers that a turn could use and that are not connected."""

import asyncio
from collections.abc import Collection

from django.conf import settings

from gateway_app.runtime.agents import agent_of
from gateway_app.runtime.mcp import POLL_SECS, mcp_states, secs_since_start
from responses_app.database import database
from responses_app.eventlog import AdmittedRequest
from responses_app.models import Response


def deviation(label: str) -> str:
    return f"no MCP server {label}"


async def wait_for_servers(row: Response, admitted: AdmittedRequest | None) -> list[str]:
    """The missing ones. In the first seconds of a process, servers that are starting are awaited.

    A server that was down once is not awaited: each turn would take longer while it is away.
    """
    if not settings.HERMES_MCP_SERVERS:
        return []
    fields = row.request
    if admitted is not None:
        fields = admitted.request
    tools = fields.get("tools")
    labels = await database.look_up_with_retry(_labels, row.model, tools, row.client_tools)
    limit_secs: float = settings.HERMES_MCP_START_SECS
    while _is_any_starting(labels) and secs_since_start() < limit_secs:  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECS)
    ready = {state["label"] for state in mcp_states() if state["state"] == "ready"}
    return sorted(labels - ready)


def _labels(model: str, tools: list[dict[str, object]] | None, mode: str) -> set[str]:
    return agent_of(model).server_labels(tools, mode)


def _is_any_starting(labels: Collection[str]) -> bool:
    states = {state["label"]: state for state in mcp_states()}
    for label in labels:
        state = states.get(label)
        if state is None or (state["state"] == "connecting" and not state["error"]):
            return True
    return False
