"""What operators see: sessions as timelines, and the content of others as plain text."""

import re

import pytest

from tests.support.server import Server, eventually, script
from tests.support.staff import (
    RESPONSES,
    SESSIONS,
    Operator,
    response_page,
    session_page,
)
from tests.support.stored_rows import stored_rows, until_merged

XSS = "<img src=x onerror=alert(1)>"


def ask(server: Server, text: str, session: str | None = None, **more: object) -> str:
    headers = {"X-Hermes-Session-Id": session} if session else {}
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": text, **more}, headers=headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["id"])


def test_a_session_is_a_timeline_of_its_turns_each_once(server: Server, operator: Operator) -> None:
    asked = ["first question", script({"call": "effect", "arguments": {"text": "tool says so"}}, {"say": "after it"})]
    asked.append(script({"fail": "the model is out"}))
    ids = [ask(server, text, "timeline") for text in asked]
    page = operator.page(session_page(operator, "timeline"))
    places = [page.index(f"<code>{response_id}</code>") for response_id in ids]
    assert places == sorted(places)
    assert all(page.count(f"<code>{response_id}</code>") == 1 for response_id in ids)
    assert page.count(">first question<") == 1
    assert "<code>effect</code>" in page
    assert re.search(r'<pre aria-label="Arguments">{\n  &quot;text&quot;: &quot;tool says so&quot;\n}</pre>', page)
    assert '<pre aria-label="Output" class="hs-output">tool says so</pre>' in page
    assert "the model is out" in page
    assert "tokens in" in page
    assert "1 attempt" in page
    assert 'class="hs-state hs-failed"' in page


def test_pages_lead_to_each_other(server: Server, operator: Operator) -> None:
    first = ask(server, script({"call": "effect", "arguments": {}}), "links")
    second = ask(server, "again", "links")
    page = operator.page(response_page(first))
    assert f'continued by <a href="{response_page(second)}">' in page
    assert session_page(operator, "links") in page
    assert f'href="/live/{first}"' in page
    event = re.search(r'href="(/admin/responses_app/toolevent/\d+/change/)"', page)
    assert event is not None
    assert f'href="{response_page(first)}"' in operator.page(event[1])
    assert f'continues <a href="{response_page(first)}">' in operator.page(response_page(second))
    assert event[1] in operator.page("/admin/responses_app/toolevent/", q=first)


def test_what_others_wrote_is_text_on_every_page(server: Server, operator: Operator) -> None:
    call = {"call": "effect", "arguments": {"text": XSS}}
    with server.http() as client:
        made = client.post("/v1/conversations", json={"name": f"named {XSS}".replace("/", ""), "metadata": {"x": XSS}})
        assert made.status_code == 200, made.text
        conversation = made.json()["id"]
    asked = script(call, {"call": "_hidden", "arguments": {"text": XSS}}, {"think": XSS}, {"say": XSS})
    response_id = ask(server, asked, conversation=conversation, metadata={"note": XSS}, unknown_field=XSS)
    failed = ask(server, script({"fail": XSS}), XSS.replace("/", ""))
    pages = [
        response_page(response_id),
        response_page(failed),
        session_page(operator, conversation),
        session_page(operator, XSS),
        f"/admin/responses_app/conversation/{conversation}/change/",
        *re.findall(r"/admin/responses_app/toolevent/\d+/change/", operator.page(response_page(response_id))),
        RESPONSES,
        SESSIONS,
        "/admin/responses_app/toolevent/",
        "/admin/responses_app/conversation/",
    ]
    assert len(pages) > 10
    seen = [operator.page(page) for page in pages]
    assert not [page for page, text in zip(pages, seen, strict=True) if "<img src=x" in text]
    assert sum("&lt;img src=x" in text for text in seen) > 7


def test_a_running_response_shows_its_output(server: Server, operator: Operator) -> None:
    with server.http() as client:
        body = {"input": script({"say": "half a sentence "}, {"gate": "admin-running"}), "background": True}
        response_id = client.post("/v1/responses", json=body).json()["id"]
    path = response_page(response_id)
    eventually(lambda: "half a sentence </div>" in operator.page(path), what="the text so far")
    assert 'value="cancel"' in operator.page(path)
    server.open_gate("admin-running")
    server.ended(response_id)
    assert 'value="cancel"' not in operator.page(path)


@pytest.mark.parametrize("by", ["id", "session", "owner", "text", "call"])
def test_responses_are_found_by(by: str, server: Server, operator: Operator) -> None:
    response_id = ask(server, script({"call": "effect", "arguments": {}}), f"found-by-{by}")
    if by == "text":
        response_id = ask(server, 'Viele Grüße: 100%_sure "quoted"', "found-by-text")
        until_merged(server, response_id)
    other = ask(server, "something else", f"not-found-by-{by}")
    call = stored_rows(server, "toolevent", "call_id", order_by="id DESC")[0][0]
    terms = {
        "id": response_id,
        "session": f"found-by-{by}",
        "owner": "admin",
        "call": call,
        "text": 'viele Grüße: 100%_SURE "quo',
    }
    page = operator.page(RESPONSES, q=terms[by])
    assert response_id in page
    assert (other in page) == (by == "owner")


def test_filters_narrow_the_list(server: Server, operator: Operator) -> None:
    good, bad = ask(server, "fine"), ask(server, script({"fail": "not fine"}))
    page = operator.page(RESPONSES, status__exact="failed", kind__exact="responses", owner="admin")
    assert bad in page
    assert good not in page
    assert good not in operator.page(RESPONSES, owner="unknown")
    assert good in operator.page(RESPONSES, model="hermes-agent", created_at__gte="2020-01-01 00:00:00+00:00")
    assert good not in operator.page(RESPONSES, model="another")


def test_lists_say_what_was_asked_and_how_a_session_began(server: Server, operator: Operator) -> None:
    ask(server, "how it began", "shown in lists")
    second = ask(server, "what came then", "shown in lists")
    assert '<td class="field-asked">what came then</td>' in operator.page(RESPONSES, q=second)
    assert '<td class="field-about">how it began</td>' in operator.page(SESSIONS, q="shown in lists")


def test_long_sessions_come_in_pages(server: Server, operator: Operator) -> None:
    for number in range(53):
        ask(server, f"turn {number + 1} of many", "long")
    path = session_page(operator, "long")
    first, rest = operator.page(path), operator.page(path, after="50")
    assert first.count('<article class="hs-turn') == 50
    assert rest.count('<article class="hs-turn') == 3
    assert "?after=50" in first
    assert "?after=0" in rest
    assert "turn 53 of many" in rest
    assert operator.page(path, after="nonsense").count('<article class="hs-turn') == 50
