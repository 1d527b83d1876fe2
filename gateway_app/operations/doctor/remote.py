"""What ``doctor`` asks others: models, MCP servers and the channel layer, each with a short limit."""

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

from gateway_app.config.models import Model
from gateway_app.operations.doctor.checks import (
    Finding,
    fail,
    note,
    ok,
    timed,
)

if TYPE_CHECKING:
    from gateway_app.tools.mcp.toolset import ServerState

OPENAI_URL = "https://api.openai.com/v1"
IN_MEMORY = "channels.layers.InMemoryChannelLayer"
POLL_SECS = 0.05


def check_upstreams(timeout_secs: float) -> Iterator[Finding]:
    for model in settings.HERMES_MODELS:
        if model["provider"] == "builtin":
            yield note(
                "model",
                "the built-in model answers: an offline demonstration",
                "Set HERMES_PROVIDER.",
            )
        else:
            yield _upstream(model, timeout_secs)


def _upstream(model: Model, timeout_secs: float) -> Finding:
    import httpx2  # comes with the SDK, which only a real upstream needs

    base = (model["base_url"] or OPENAI_URL).rstrip("/")
    headers = {"Authorization": f"Bearer {model['api_key']}"} if model["api_key"] else {}
    started = time.monotonic()
    try:
        answer = httpx2.get(f"{base}/models", headers=headers, timeout=timeout_secs)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        told = f"{base} cannot be reached: {error or type(error).__name__}"
        return fail("model", told, "Check HERMES_BASE_URL, the network and its proxy.")
    told = f"{base} answers in {timed(started)}"
    if answer.status_code in (401, 403):
        return fail(
            "model", f"{told}, but refuses the key ({answer.status_code})", "Check HERMES_API_KEY."
        )
    if answer.status_code >= 500:
        return fail(
            "model", f"{told}, with an error ({answer.status_code})", "Look at the upstream."
        )
    if model["model"] not in _names(answer):
        return note(
            "model",
            f"{told}; it does not list {model['model']!r}",
            "Check HERMES_MODEL, if calls fail.",
        )
    return ok("model", f"{told} and knows {model['model']}")


def _names(answer: object) -> list[str]:
    try:
        return [entry["id"] for entry in answer.json()["data"]]  # type: ignore[attr-defined]
    except (ValueError, KeyError, TypeError):
        return []


def check_mcp(timeout_secs: float) -> Iterator[Finding]:
    if not settings.HERMES_MCP_SERVERS:
        yield ok("mcp", "no servers are configured")
        return
    yield from async_to_sync(_mcp)(timeout_secs)


async def _mcp(timeout_secs: float) -> list[Finding]:
    from gateway_app.tools.mcp.toolset import McpToolset

    toolset = McpToolset(settings.HERMES_MCP_SERVERS, version=settings.HERMES_VERSION)
    toolset.start()
    deadline = time.monotonic() + timeout_secs
    while time.monotonic() < deadline and any(s["state"] == "connecting" for s in toolset.states()):  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECS)
    states = toolset.states()
    await toolset.stop()
    return [_mcp_finding(state, timeout_secs) for state in states]


def _mcp_finding(state: "ServerState", timeout_secs: float) -> Finding:
    if state["state"] == "ready":
        return ok("mcp", f"{state['label']} offers {state['tools']} tools")
    told = state["error"] or f"no answer within {timeout_secs:g} s"
    return fail(
        "mcp", f"{state['label']}: {told}", f"Check mcp_servers.{state['label']} in config.yaml."
    )


def check_layer(timeout_secs: float) -> Iterator[Finding]:
    backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
    if backend == IN_MEMORY:
        yield ok("layer", "in memory: fit for one server process")
        return
    started = time.monotonic()
    try:
        async_to_sync(layer_round_trip)(timeout_secs)
    except Exception as error:  # whatever a backend raises, it is the finding
        told = f"{backend} does not answer: {error or type(error).__name__}"
        yield fail(
            "layer",
            told,
            "Check REDIS_URL, and that Redis runs. Until then everything works, only later.",
        )
        return
    yield ok("layer", f"{backend} answers in {timed(started)}")


async def layer_round_trip(timeout_secs: float) -> None:
    layer = get_channel_layer()
    assert layer is not None
    async with asyncio.timeout(timeout_secs):
        channel = await layer.new_channel()
        await layer.send(channel, {"type": "doctor"})
        await layer.receive(channel)
