"""The endpoints of this server, each checked against the routers that serve it."""

import re
from collections.abc import Sequence

from responses_app.streaming.routing import StreamingRoute, api_view

Endpoint = tuple[str, str]

# With the names that Hermes gives them, then our own.
ENDPOINTS: dict[str, Endpoint] = {
    "health": ("GET", "/health"),
    "health_detailed": ("GET", "/health/detailed"),
    "models": ("GET", "/v1/models"),
    "model_options": ("GET", "/api/model/options"),
    "chat_completions": ("POST", "/v1/chat/completions"),
    "responses": ("POST", "/v1/responses"),
    "runs": ("POST", "/v1/runs"),
    "run_status": ("GET", "/v1/runs/{run_id}"),
    "run_events": ("GET", "/v1/runs/{run_id}/events"),
    "run_approval": ("POST", "/v1/runs/{run_id}/approval"),
    "run_steer": ("POST", "/v1/runs/{run_id}/steer"),
    "run_stop": ("POST", "/v1/runs/{run_id}/stop"),
    "skills": ("GET", "/v1/skills"),
    "toolsets": ("GET", "/v1/toolsets"),
    "sessions": ("GET", "/api/sessions"),
    "session_create": ("POST", "/api/sessions"),
    "session": ("GET", "/api/sessions/{session_id}"),
    "session_update": ("PATCH", "/api/sessions/{session_id}"),
    "session_delete": ("DELETE", "/api/sessions/{session_id}"),
    "session_messages": ("GET", "/api/sessions/{session_id}/messages"),
    "session_fork": ("POST", "/api/sessions/{session_id}/fork"),
    "session_model": ("POST", "/api/sessions/{session_id}/model"),
    "session_chat": ("POST", "/api/sessions/{session_id}/chat"),
    "session_chat_stream": ("POST", "/api/sessions/{session_id}/chat/stream"),
    "responses_list": ("GET", "/v1/responses"),
    "response": ("GET", "/v1/responses/{response_id}"),
    "response_delete": ("DELETE", "/v1/responses/{response_id}"),
    "response_cancel": ("POST", "/v1/responses/{response_id}/cancel"),
    "response_input_items": ("GET", "/v1/responses/{response_id}/input_items"),
    "response_approval": ("POST", "/v1/responses/{response_id}/approval"),
    "response_input_tokens": ("POST", "/v1/responses/input_tokens"),
    "response_compact": ("POST", "/v1/responses/compact"),
    "conversations": ("POST", "/v1/conversations"),
    "conversation_items": ("GET", "/v1/conversations/{conversation_id}/items"),
    "chat_completions_list": ("GET", "/v1/chat/completions"),
    "chat_completion_update": ("POST", "/v1/chat/completions/{completion_id}"),
    "chat_completion_messages": ("GET", "/v1/chat/completions/{completion_id}/messages"),
    "runs_list": ("GET", "/v1/runs"),
    "openapi": ("GET", "/openapi.json"),
}


def served_endpoints(routes: Sequence[StreamingRoute]) -> dict[str, Endpoint]:
    served = {}
    for name, (method, path) in ENDPOINTS.items():
        example = re.sub(r"\{\w+\}", "x", path)
        if _has_route(method, example, routes) or _has_view(method, example):
            served[name] = (method, path)
    return served


def _has_route(method: str, path: str, routes: Sequence[StreamingRoute]) -> bool:
    return any(route.method == method and route.path.fullmatch(path) for route in routes)


def _has_view(method: str, path: str) -> bool:
    view = api_view(path)
    return view is not None and hasattr(view, method.lower())
