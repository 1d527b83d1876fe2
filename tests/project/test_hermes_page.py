"""The page for people who come from Hermes Agent names what exists here, and nothing else as existing."""

import re
from typing import Any

import pytest

from gateway_app.api.runs.renderers import RunEvent
from gateway_app.api.sessions.renderers import SessionEvent
from gateway_app.config.known_keys import ignored_keys, sections
from hermes_site.asgi import routes
from responses_app.http.cors import ALLOWED_HEADERS, EXPOSED_HEADERS
from responses_app.protocol import events
from responses_app.streaming.routing import allowed_methods
from tests.support.server import ROOT

pytestmark = pytest.mark.any_database

PAGE = (ROOT / "docs/hermes.md").read_text()
CONFIGURATION = (ROOT / "docs/configuration.md").read_text()
VERDICTS = {"same", "better", "differs", "not there"}
STREAMS = {
    "Responses": {str(value) for value in vars(events).values() if str(value).startswith("response.")},
    "chat": {events.CHAT_TOOL_PROGRESS, events.CHAT_APPROVAL_REQUEST, events.CHAT_APPROVAL_RESPONDED},
    "runs": {str(event) for event in RunEvent},
    "sessions": {str(event) for event in SessionEvent},
}

Row = list[str]


def rows(heading: str) -> list[Row]:
    """The rows of the table below a heading, without its first two lines."""
    section = PAGE.partition(f"\n{heading}\n")[2]
    table = re.search(r"((?:^\|.*\n)+)", section, re.MULTILINE)
    assert table is not None, heading
    found = []
    for line in table[1].splitlines()[2:]:
        found.append([cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" | ")])
    return found


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def is_served(route: str) -> bool:
    method, _, path = route.partition(" ")
    return method in allowed_methods(re.sub(r"\{\w+\}", "x", path.partition("?")[0]), routes)


@pytest.mark.parametrize(
    "heading", ["## Routes", "### Responses", "### Chat completions", "## Headers", "## Variables"]
)
def test_every_row_has_one_of_the_four_verdicts(heading: str) -> None:
    found = rows(heading)
    assert len(found) > 5
    assert {row[1] for row in found} <= VERDICTS


def test_a_route_is_served_exactly_if_the_page_has_it() -> None:
    for route, verdict, *_ in rows("## Routes"):
        [name] = named(route)
        assert is_served(name) == (verdict != "not there"), name


def test_every_other_route_that_the_page_names_is_served() -> None:
    listed = {named(row[0])[0] for row in rows("## Routes")}
    others = set(re.findall(r"`((?:GET|POST|PATCH|DELETE) /[^` ]+)`", PAGE)) - listed
    absent = {"GET /v1/browser-control/ws"}
    assert len(others) > 8
    for route in others - absent:
        assert is_served(route), route


def test_a_variable_is_read_exactly_if_the_page_has_it() -> None:
    for variable, verdict, *_ in rows("## Variables"):
        [name] = named(variable)
        is_read = f"\n| `{name}` |" in CONFIGURATION
        assert is_read == (verdict != "not there"), name


def test_every_variable_that_the_page_recommends_is_read() -> None:
    theirs = {named(row[0])[0] for row in rows("## Variables")}
    others = set(re.findall(r"`((?:HERMES|API_SERVER|GATEWAY|WHATSAPP)_[A-Z_]+)(?:=\w+)?`", PAGE)) - theirs
    assert len(others) > 5
    for name in others:
        assert f"`{name.removesuffix('_FILE')}` |" in CONFIGURATION, name


def nested(path: str) -> dict[str, Any]:
    first, _, rest = path.partition(".")
    return {first: nested(rest) if rest else {}}


def test_a_key_of_the_configuration_has_no_effect_exactly_if_the_page_has_it_so() -> None:
    for key, verdict, text in rows("## Keys of config.yaml"):
        [path] = named(key)
        config = nested(path)
        assert (path in ignored_keys(config)) == (verdict == "not there" or "stops the start: " in text), path
        problems = [section.problem(given, name) for name, section, given in sections(config)]
        assert any(problems) == ("stops the start: " in text), path


def test_an_event_is_sent_exactly_if_the_page_has_it() -> None:
    for stream, cell, verdict, text in rows("## Events"):
        sent = STREAMS.get(stream, set())
        for name in named(cell):
            if verdict in ("same", "better") and not name.startswith(":"):
                assert name in sent, name
            if verdict == "not there":
                assert name not in sent, name
        for name in re.findall(r"`(response\.[a-z_.]+|hermes\.[a-z.]+)`", text):
            assert name in sent, name


def test_every_header_of_ours_is_one_that_pages_may_send_or_read() -> None:
    known = (ALLOWED_HEADERS + EXPOSED_HEADERS).decode().lower()
    names = set(re.findall(r"`(X-Hermes-[A-Za-z-]+)[:`]", PAGE))
    assert len(names) > 10
    for name in names:
        assert name.lower() in known, name
