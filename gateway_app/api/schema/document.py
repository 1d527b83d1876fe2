"""The OpenAPI document: every surface describes itself, and this module joins the parts."""

import re
from itertools import chain
from typing import Any

from django.conf import settings

import gateway_app.api.chat.openapi as chat
import gateway_app.api.discovery.openapi as discovery
import gateway_app.api.platforms.openapi as platforms
import gateway_app.api.runs.openapi as runs
import gateway_app.api.schema.pages as pages
import gateway_app.api.sessions.openapi as sessions
import gateway_app.operations.monitoring.openapi as monitoring
from responses_app.requests import chat_content
from responses_app.schema import (
    conversations,
    events,
    items,
    operations,
    requests,
    responses,
)
from responses_app.schema.builders import Operation

VERSION = "3.2.0"  # the first that can describe a stream of events
_SURFACES = (
    responses,
    conversations,
    chat,
    runs,
    sessions,
    discovery,
    platforms,
    monitoring,
    pages,
)
_VOCABULARY = (items, chat_content, requests, events)  # schemas that several surfaces use
_ABOUT = """\
OpenAI's Responses and Chat Completions, and Hermes' runs and sessions, over the same stored
responses.

Every error is `{"error": {"message", "type", "param", "code"}}`, also for unknown paths and
malformed HTTP. The header `X-Hermes-Ignored` names the fields of a request that nothing acts on. In
a request, `null` means the same as absent. A stream without events has a comment line
(`: keepalive`) every ten seconds.
"""
_PATH_PARAMETERS = {
    "model": "A name of GET /v1/models; a slash in it may stay as it is.",
    "response_id": "resp_…",
    "conversation_id": "conv_…, or its name.",
    "item_id": "The id of an item.",
    "completion_id": "chatcmpl-…",
    "run_id": "run_…",
    "platform": "One that is enabled in config.yaml, such as whatsapp.",
    "session_id": "As the X-Hermes-Session-Id header names it.",
}


def document() -> dict[str, Any]:
    components = operations.components()
    for module in chain(_VOCABULARY, _SURFACES):
        for name in sorted(module.SCHEMAS):
            components["schemas"][name] = module.SCHEMAS[name]
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    paths: dict[str, Any] = {}
    for surface in _SURFACES:
        for path, methods in surface.PATHS.items():
            paths[path] = _path_item(path, methods)
    security: list[dict[str, list[str]]] = []
    if settings.HERMES_AUTH == "on":
        security = [{"bearer": []}]
    tags = dict.fromkeys(_tag(path) for path in paths)
    return {
        "openapi": VERSION,
        "info": {"title": "Hermes Site", "version": settings.HERMES_VERSION, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": security,
        "tags": [{"name": tag} for tag in tags],
        "paths": paths,
        "components": components,
    }


def _path_item(path: str, methods: dict[str, Operation]) -> dict[str, Any]:
    """The operations of a path, with its parameters and its tag."""
    item: dict[str, Any] = {}
    parameters = [_path_parameter(name) for name in re.findall(r"{(\w+)}", path)]
    if parameters:
        item["parameters"] = parameters
    for method, operation in methods.items():
        item[method] = {"tags": [_tag(path)]} | operation
    return item


def _path_parameter(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _PATH_PARAMETERS[name],
        "schema": {"type": "string"},
    }


def _tag(path: str) -> str:
    """The collection: ``/v1/chat/completions/{id}`` has the tag chat."""
    parts = [part for part in path.split("/") if part not in ("", "v1", "api")]
    return parts[0].removesuffix(".json")
