"""``/v1/capabilities`` and ``/v1/toolsets``: what a client can find here, before it asks for anything."""

from typing import Any

from django.conf import settings
from rest_framework.response import Response

from gateway_app.api.discovery.endpoints import Endpoint, served
from gateway_app.runtime.agents import Agent, agent_of, available_tools
from gateway_app.runtime.mcp import mcp_states
from responses_app.api.base import ApiRequest, ApiView
from responses_app.http.session_key import SESSION_KEY_HEADER
from responses_app.models.idempotency import KEY_LIFETIME
from responses_app.requests.headers import SESSION_HEADER
from responses_app.requests.model_name import model_names, resolve_model

OWN_TOOLSET = "hermes"
# Each is there when its door is.
FEATURES = {
    "chat_completions": "chat_completions",
    "chat_completions_streaming": "chat_completions",
    "responses_api": "responses",
    "responses_streaming": "responses",
    "run_submission": "runs",
    "run_status": "run_status",
    "run_events_sse": "run_events",
    "run_stop": "run_stop",
    "run_steer": "run_steer",
    "run_approval_response": "run_approval",
    "tool_progress_events": "chat_completions",
    "approval_events": "run_events",
    "session_resources": "sessions",
    "session_chat": "session_chat",
    "session_chat_streaming": "session_chat_stream",
    "session_fork": "session_fork",
    "session_model_lock": "session_model",
    "model_options": "model_options",
    "skills_api": "skills",
}
NOT_HERE = (
    "admin_config_rw",
    "jobs_admin",
    "memory_write_api",
    "audio_api",
    "realtime_voice",
)


class CapabilitiesView(ApiView):
    def get(self, request: ApiRequest) -> Response:
        endpoints = served(getattr(request, "scope", {}).get("streaming_routes", ()))
        return Response(
            {
                "object": "hermes.api_server.capabilities",
                "platform": "hermes-agent",
                "version": settings.HERMES_VERSION,
                "model": next(iter(model_names(request.auth)), None),
                "auth": {"type": "bearer", "required": settings.HERMES_AUTH == "on"},
                "runtime": {
                    "mode": "server_agent",
                    "tool_execution": "server",
                    "split_runtime": False,
                    "description": "The agent and its tools run on the server; tools of a request run with its client.",
                },
                "features": _features(endpoints),
                "endpoints": {
                    name: {"method": method, "path": path}
                    for name, (method, path) in endpoints.items()
                },
            }
        )


class ToolsetsView(ApiView):
    def get(self, request: ApiRequest) -> Response:
        agent = agent_of(resolve_model(request.query_params.get("model"), request.auth))
        data = [_own_toolset(agent), *(_mcp_toolset(agent, dict(state)) for state in mcp_states())]
        return Response({"object": "list", "platform": "api_server", "data": data})


def _features(endpoints: dict[str, Endpoint]) -> dict[str, Any]:
    kept = {
        "supported": True,
        "durable": True,
        "retention_seconds": int(KEY_LIFETIME.total_seconds()),
    }
    return {
        **{feature: name in endpoints for feature, name in FEATURES.items()},
        **dict.fromkeys(NOT_HERE, False),
        "responses_websocket": True,
        "responses_resume": True,
        "responses_background": True,
        "reasoning_streaming": True,
        "cors": bool(settings.API_SERVER_CORS_ORIGINS),
        "idempotency": {**kept, "streams": True, "joins_sdk_retries": settings.HERMES_JOIN_RETRIES},
        "runs_idempotency": kept if "runs" in endpoints else {**kept, "supported": False},
        "session_continuity_header": SESSION_HEADER,
        "session_key_header": SESSION_KEY_HEADER,
        "max_body_bytes": settings.MAX_BODY_BYTES,
    }


def _own_toolset(agent: Agent) -> dict[str, Any]:
    names = _names(agent, "")
    return {
        "name": OWN_TOOLSET,
        "label": "Hermes",
        "description": "Tools this server runs itself.",
        "enabled": bool(names),
        "configured": True,
        "tools": names,
    }


def _mcp_toolset(agent: Agent, state: dict[str, Any]) -> dict[str, Any]:
    """A server that is away is still listed: its tools come back with it."""
    label = state["label"]
    names = _names(agent, label)
    return {
        "name": label,
        "label": label,
        "description": f"Tools of the MCP server {label} ({state['state']}).",
        "enabled": bool(names),
        "configured": True,
        "tools": names,
    }


def _names(agent: Agent, server_label: str) -> list[str]:
    """Those of the agent; tools with a leading underscore are nobody's business."""
    own = {tool.name for tool in agent.tools(None)}
    found = (tool for tool in available_tools().values() if tool.server_label == server_label)
    return sorted(tool.name for tool in found if tool.name in own and not tool.name.startswith("_"))
