"""Checks that ask other servers: models, MCP servers and the channel layer."""

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.core import checks

from gateway_app.config.models import Model, public_address
from gateway_app.config.presets.registry import PRESETS
from gateway_app.operations.doctor.messages import Ok
from gateway_app.providers.model_server import is_listed, upstream_headers
from gateway_app.runtime.layer_channels import temporary_channel
from gateway_app.runtime.windows import Window, WindowSource, windows

if TYPE_CHECKING:
    from httpx2 import Response

    from gateway_app.tools.mcp.toolset import McpToolset, ServerState

IN_MEMORY = "channels.layers.InMemoryChannelLayer"
POLL_SECS = 0.05


def check_upstreams(timeout_secs: float) -> Iterator[checks.CheckMessage]:
    for model in settings.HERMES_MODELS:
        if model["provider"] == "builtin":
            yield checks.Warning(
                "the built-in model answers: an offline demonstration",
                hint="Set HERMES_PROVIDER.",
                obj="model",
                id="gateway_app.W016",
            )
        else:
            yield _check_upstream(model, timeout_secs)


def check_windows(timeout_secs: float) -> Iterator[checks.CheckMessage]:
    for model in settings.HERMES_MODELS:
        if model["provider"] != "builtin":
            yield _check_window(model, timeout_secs)


def _check_upstream(model: Model, timeout_secs: float) -> checks.CheckMessage:
    import httpx2  # comes with the SDK, which only a real upstream needs

    address = public_address(model)
    started = time.monotonic()
    try:
        response = httpx2.get(
            f"{model['base_url'].rstrip('/')}/models",
            headers=upstream_headers(model),
            params=model["options"].get("query"),
            timeout=timeout_secs,
        )
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return checks.Error(
            f"{address} cannot be reached: {error or type(error).__name__}",
            hint="Is its server running? Check HERMES_BASE_URL, the network and its proxy.",
            obj="model",
            id="gateway_app.E017",
        )
    text = f"{address} ({PRESETS[model['provider']].title}) answers in {_elapsed(started)}"
    return _check_model_list(model["model"], response, text)


def _check_window(model: Model, timeout_secs: float) -> checks.CheckMessage:
    """Where a profile has none of its own."""
    window = windows.ask_now(model, timeout_secs)
    if model == settings.HERMES_MODELS[0] and settings.HERMES_CONTEXT_LENGTH:
        window = Window(settings.HERMES_CONTEXT_LENGTH, WindowSource.SETTING)
    if window.tokens:
        return Ok("model", f"the context window of {model['model']}: {window}")
    return checks.Warning(
        f"the context window of {model['model']} is not known",
        hint="Set HERMES_CONTEXT_LENGTH, or context_length of a profile.",
        obj="model",
        id="gateway_app.W045",
    )


def _check_model_list(model: str, response: "Response", text: str) -> checks.CheckMessage:
    if response.status_code in (401, 403):
        return checks.Error(
            f"{text}, but refuses the key ({response.status_code})",
            hint="Check HERMES_API_KEY.",
            obj="model",
            id="gateway_app.E018",
        )
    if response.status_code >= 500:
        return checks.Error(
            f"{text}, with an error ({response.status_code})",
            hint="Look at the upstream.",
            obj="model",
            id="gateway_app.E019",
        )
    if not is_listed(model, _model_names(response)):
        return checks.Warning(
            f"{text}; it does not list {model!r}",
            hint="Check HERMES_MODEL, if calls fail.",
            obj="model",
            id="gateway_app.W020",
        )
    return Ok("model", f"{text} and knows {model}")


def _model_names(response: "Response") -> list[str]:
    try:
        return [str(entry["id"]) for entry in response.json()["data"]]
    except (ValueError, KeyError, TypeError):
        return []


def check_mcp(timeout_secs: float) -> Iterator[checks.CheckMessage]:
    if not settings.HERMES_MCP_SERVERS:
        yield Ok("mcp", "no servers are configured")
        return
    for state in async_to_sync(_mcp_states)(timeout_secs):
        yield _check_mcp_server(state, timeout_secs)


async def _mcp_states(timeout_secs: float) -> list["ServerState"]:
    from gateway_app.tools.mcp.toolset import McpToolset

    toolset = McpToolset(settings.HERMES_MCP_SERVERS, version=settings.HERMES_VERSION)
    toolset.start()
    deadline = time.monotonic() + timeout_secs
    while time.monotonic() < deadline and _is_connecting(toolset):  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECS)
    states = toolset.states()
    await toolset.stop()
    return states


def _is_connecting(toolset: "McpToolset") -> bool:
    return any(state["state"] == "connecting" for state in toolset.states())


def _check_mcp_server(state: "ServerState", timeout_secs: float) -> checks.CheckMessage:
    label = state["label"]
    if state["state"] == "ready":
        return Ok("mcp", f"{label} offers {state['tools']} tools")
    error = state["error"] or f"no answer within {timeout_secs:g} s"
    return checks.Error(
        f"{label}: {error}",
        hint=f"Check mcp_servers.{label} in config.yaml.",
        obj="mcp",
        id="gateway_app.E021",
    )


def check_layer(timeout_secs: float) -> Iterator[checks.CheckMessage]:
    backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
    if backend == IN_MEMORY:
        yield Ok("layer", "in memory: fit for one server process")
        return
    started = time.monotonic()
    try:
        async_to_sync(layer_round_trip)(timeout_secs)
    except Exception as error:  # whatever a backend raises, it is the finding
        yield checks.Error(
            f"{backend} does not answer: {str(error) or type(error).__name__}",
            hint="Check REDIS_URL, and the server that it names. "
            "Until it answers, everything works, only later.",
            obj="layer",
            id="gateway_app.E022",
        )
        return
    yield Ok("layer", f"{backend} answers in {_elapsed(started)}")


async def layer_round_trip(timeout_secs: float) -> None:
    layer = get_channel_layer()
    assert layer is not None
    async with asyncio.timeout(timeout_secs), temporary_channel(layer) as channel:
        await layer.send(channel, {"type": "doctor"})
        await layer.receive(channel)


def _elapsed(started: float) -> str:
    return f"{(time.monotonic() - started) * 1000:.0f} ms"
