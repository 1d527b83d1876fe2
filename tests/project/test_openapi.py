"""The OpenAPI document names exactly what is served."""

import inspect
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.validation import validate_schema

from gateway_app.api.chat import requests as chat_request
from gateway_app.api.runs import openapi as runs
from gateway_app.api.runs.renderers import RunEvent
from gateway_app.api.schema.document import document
from gateway_app.api.sessions import openapi_events as session_events
from gateway_app.api.sessions import requests as session_requests
from gateway_app.api.sessions.renderers import SessionEvent
from gateway_app.operations.dashboard.live_stream import LIVE_ROUTES
from gateway_app.operations.dashboard.security import POLICY
from gateway_app.providers.openai.extra_fields import CHAT_ONLY_FIELDS
from hermes_site.asgi import routes
from responses_app.models.tool_events import Decision
from responses_app.protocol.response_object import initial_body
from responses_app.protocol.status import Status
from responses_app.requests import compact
from responses_app.requests.approvals import ALIASES
from responses_app.requests.create import ECHOED, OTHERS, UNECHOED
from responses_app.schema import events
from responses_app.schema.items import RESPONSE
from responses_app.streaming.routing import SOCKET_ROUTES
from tests.support.openapi_reader import METHODS, Reader
from tests.support.server import ROOT, Server

pytestmark = pytest.mark.any_database

FOR_PEOPLE = ("django.", "gateway_app.operations.dashboard.")  # modules of pages: the admin, and the operators' own
BROWSER = shutil.which("chromium")


def views() -> Iterator[tuple[str, Any]]:
    def walk(patterns: list[Any], before: str) -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            route = before + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, route)
            elif isinstance(pattern, URLPattern):
                yield re.sub(r"<\w+:(\w+)>", r"{\1}", route), pattern.callback

    return walk(get_resolver().url_patterns, "/")


def served() -> set[tuple[str, str]]:
    plain = {
        (method, path)
        for path, view in views()
        if not view.__module__.startswith(FOR_PEOPLE) and not path.startswith("/admin/")
        for method in METHODS
        if hasattr(view.view_class, method)
    }
    streamed = {
        (route.method.lower(), re.sub(r"\(\?P<(\w+)>[^)]*\)", r"{\1}", route.path.pattern))
        for route in routes
        if route not in LIVE_ROUTES
    }
    return plain | streamed


def test_it_has_every_route_with_its_methods_and_nothing_else() -> None:
    described = {(method, path) for method, path, _ in Reader(document()).operations()}
    assert len(described) > 40
    assert described == served()


def test_path_parameters_are_those_of_the_path() -> None:
    for path, item in document()["paths"].items():
        named = [parameter["name"] for parameter in item.get("parameters", [])]
        assert named == re.findall(r"\{(\w+)\}", path)


def test_it_is_an_openapi_document_and_no_reference_leads_nowhere() -> None:
    made = document()
    validate_schema(made)
    reader = Reader(made)
    for target in re.findall(r"'\$ref': '([^']+)'", str(made)):
        assert reader.resolved({"$ref": target})
    names = [operation["operationId"] for _, _, operation in reader.operations()]
    assert len(names) == len(set(names))


def test_every_schema_is_used() -> None:
    made = document()
    used = set(re.findall(r"'#/components/schemas/(\w+)'", str(made)))
    assert used == made["components"]["schemas"].keys()


def fields_of(schema: str) -> set[str]:
    return set(document()["components"]["schemas"][schema]["properties"])


def test_requests_have_the_fields_that_are_read() -> None:
    assert fields_of("CreateResponse") == {*ECHOED, *UNECHOED, *OTHERS}
    assert fields_of("CompactConversation") == {*compact.NAMES, "input", "model"}
    own = {*chat_request._ACTED_ON, *chat_request.OWN_FIELDS, *CHAT_ONLY_FIELDS}
    assert fields_of("CreateChatCompletion") == own
    assert fields_of("CreateSession") == set(session_requests.CREATE_FIELDS)
    assert fields_of("UpdateSession") == set(session_requests.CHANGES)
    assert fields_of("SessionTurn") > fields_of("CreateResponse")
    assert fields_of("CreateRun") > fields_of("CreateResponse")
    decision = document()["components"]["schemas"]["Decision"]["properties"]["choice"]
    assert set(decision["enum"]) == {*ALIASES, *Decision.values}


def test_the_response_has_every_key() -> None:
    body = initial_body("resp_1", model="m", created_at=1, status=Status.QUEUED, echo={})
    assert RESPONSE["properties"].keys() == body.keys()


def test_streams_have_the_events_that_the_document_names() -> None:
    listed = (ROOT / "docs/api.md").read_text().split("## Events")[1].split("## Errors")[0]
    assert events.EVENTS.keys() == set(re.findall(r"`(response\.[\w.]+)`", listed))
    for described, names in ((runs.EVENTS, RunEvent), (session_events.EVENTS, SessionEvent)):
        assert described.keys() == set(names)
        source = Path(inspect.getfile(names)).read_text()
        rendered = set(re.findall(rf"{names.__name__}\.([A-Z_]+)", source))
        assert rendered == names.__members__.keys()


def test_the_document_names_the_websockets() -> None:
    for path in (f"/{route.pattern}" for route in SOCKET_ROUTES):
        assert f"ws://…{path}`" in document()["paths"][path]["post"]["description"]


def test_without_authentication_it_asks_for_no_key(settings: Any) -> None:
    assert document()["security"] == [{"bearer": []}]
    settings.HERMES_AUTH = "off"
    assert document()["security"] == []


# -- the page ---------------------------------------------------------------------------
def test_the_page_loads_everything_from_this_server(server: Server) -> None:
    page = httpx.get(f"{server.url}/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert re.findall(r"<script[^>]*>([^<]*)</script>", page.text) == ["", "", ""]
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(loaded) == 11
    for address in loaded:
        assert address.startswith("/")
        answer = httpx.get(server.url + address)
        assert answer.status_code == 200, address
    assert httpx.post(f"{server.url}/docs").json()["error"]["code"] == "method_not_allowed"


@pytest.mark.skipif(BROWSER is None, reason="Chromium is not on this machine: apt-get install chromium")
def test_a_browser_shows_every_operation(server: Server) -> None:
    assert BROWSER is not None
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom")
    shown = subprocess.run([BROWSER, *options, f"{server.url}/docs"], capture_output=True, text=True, timeout=90)
    described = {path for _, path, _ in Reader(document()).operations()}
    assert set(re.findall(r'data-path="([^"]+)"', shown.stdout)) == described, shown.stderr[-2000:]
