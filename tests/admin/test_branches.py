"""Branches of a session in its timeline: which turn continues which."""

import re

import pytest

from tests.support.server import Server
from tests.support.staff import SESSIONS, Operator, response_page
from tests.support.stored_rows import session_of, stored_rows

pytestmark = pytest.mark.any_database


ARTICLE = re.compile(
    r'<article class="hs-turn module([^"]*)" id="turn-(\d)">(.*?)</article>',
    re.DOTALL,
)
BRANCH = re.compile(r'Branch of <a href="([^"]+)">turn (\d)</a>')
CONTINUED = re.compile(r'continues <a href="[^"]+">turn (\d)</a>')


def test_a_branch_is_indented_and_links_to_its_parent(server: Server, operator: Operator) -> None:
    create = server.openai().responses.create
    ids: list[str] = []
    # The third turn is a branch, the fourth continues it, the fifth does not.
    for parent in (None, 0, 0, 2, 1):
        previous = ids[parent] if parent is not None else None
        ids.append(create(input="hello", previous_response_id=previous).id)
    page = operator.page(f"{SESSIONS}{session_of(server, ids[0])}/change/")
    articles = ARTICLE.findall(page)
    assert [(number, classes.strip()) for classes, number, _ in articles] == [
        ("1", ""),
        ("2", ""),
        ("3", "hs-indent-1"),
        ("4", "hs-indent-1"),
        ("5", ""),
    ]
    branches = [BRANCH.findall(content) for _, _, content in articles]
    assert branches == [[], [], [(response_page(ids[0]), "1")], [], []]
    continued = [CONTINUED.findall(content) for _, _, content in articles]
    assert continued == [[], ["1"], ["1"], ["3"], ["2"]]


def test_the_first_turn_of_a_fork_is_no_branch(server: Server, operator: Operator) -> None:
    first = server.openai().responses.create(input="hello").id
    server.openai().responses.create(input="on", previous_response_id=first)
    [(session,)] = stored_rows(server, "session", "public_id", id=session_of(server, first))
    with server.http() as client:
        made = client.post(f"/api/sessions/{session}/fork", json={"response_id": first})
    headers = {"X-Hermes-Session-Id": made.json()["session"]["id"]}
    forked = server.openai().responses.create(input="away", extra_headers=headers)
    page = operator.page(response_page(forked.id))
    assert f'continues <a href="{response_page(first)}">' in page
    assert "Branch of" not in page
