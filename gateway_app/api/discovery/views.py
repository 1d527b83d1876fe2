"""``/v1/capabilities`` and ``/v1/toolsets``: what this server offers."""

from typing import Any

from django.conf import settings
from rest_framework.response import Response

from gateway_app.api.discovery.endpoints import Endpoint, served_endpoints
from gateway_app.runtime.agents import Agent, agent_of, available_tools
from gateway_app.runtime.mcp import mcp_states
from responses_app.api.base import ApiRequest, ApiView
from responses_app.http.session_key import SESSION_KEY_HEADER
from responses_app.models import KEY_LIFETIME
from responses_app.requests.headers import SESSION_HEADER
from responses_app.requests.model_name import model_names, resolve_model

OWN_TOOLSET = "hermes"
RUNTIME = {
    "mode": "server_agent",
    "tool_execution": "server",
    "split_runtime": False,
    "description": (
        "The agent and its tools run on the server; tools of a request run with its client."
    ),
}
# Each feature, and the endpoint without which the server does not have it.
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
        scope = getattr(request, "scope", {})
        endpoints = served_endpoints(scope.get("streaming_routes", ()))
        listed = {}
        for name, (method, path) in endpoints.items():
            listed[name] = {"method": method, "path": path}
        return Response(
            {
                "object": "hermes.api_server.capabilities",
                "platform": "hermes-agent",
                "version": settings.HERMES_VERSION,
                "model": next(iter(model_names(request.auth)), None),
                "auth": {"type": "bearer", "required": settings.HERMES_AUTH == "on"},
                "runtime": RUNTIME,
                "features": _features(endpoints),
                "endpoints": listed,
            }
        )


class ToolsetsView(ApiView):
    def get(self, request: ApiRequest) -> Response:
        model = resolve_model(request.query_params.get("model"), request.auth)
        agent = agent_of(model)
        toolsets = [
            _toolset(agent, "", OWN_TOOLSET, "Hermes", "Tools this server runs itself."),
        ]
        # A server that is unavailable is listed as well: its tools come back with it.
        for state in mcp_states():
            label = state["label"]
            description = f"Tools of the MCP server {label} ({state['state']})."
            toolsets.append(_toolset(agent, label, label, label, description))
        return Response({"object": "list", "platform": "api_server", "data": toolsets})


def _features(endpoints: dict[str, Endpoint]) -> dict[str, Any]:
    features: dict[str, Any] = {}
    for feature, endpoint in FEATURES.items():
        features[feature] = endpoint in endpoints
    for feature in NOT_HERE:
        features[feature] = False
    idempotency = {
        "supported": True,
        "durable": True,
        "retention_seconds": int(KEY_LIFETIME.total_seconds()),
    }
    return features | {
        "responses_websocket": True,
        "responses_resume": True,
        "responses_background": True,
        "reasoning_streaming": True,
        "cors": bool(settings.API_SERVER_CORS_ORIGINS),
        "idempotency": idempotency
        | {"streams": True, "joins_sdk_retries": settings.HERMES_JOIN_RETRIES},
        "runs_idempotency": idempotency | {"supported": "runs" in endpoints},
        "session_continuity_header": SESSION_HEADER,
        "session_key_header": SESSION_KEY_HEADER,
        "max_body_bytes": settings.MAX_BODY_BYTES,
    }


def _toolset(
    agent: Agent, server_label: str, name: str, label: str, description: str
) -> dict[str, Any]:
    """The agent's tools of one MCP server, or of this server where the label is empty."""
    own = {tool.name for tool in agent.tools(None)}
    names = []
    for tool in available_tools().values():
        is_private = tool.name.startswith("_")
        if tool.server_label == server_label and tool.name in own and not is_private:
            names.append(tool.name)
    names.sort()
    return {
        "name": name,
        "label": label,
        "description": description,
        "enabled": bool(names),
        "configured": True,
        "tools": names,
    }
