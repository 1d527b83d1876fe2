"""Texts of megabytes: a page has their beginning, and the dashboard does not read the rest."""

import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser

from gateway_app.operations.dashboard import lists
from responses_app.admin.timeline import INDENTED_CHARS, SHOWN_CHARS, pretty
from responses_app.models import InputItem, ToolEvent
from responses_app.models.tool_events import Approver, ToolStatus
from tests.support.browser import Operator, needs_chromium
from tests.support.bulk_rows import make_row
from tests.support.server import Server

PIECES = """
async (source) => {
  const { MarkdownText } = await import("/static/dashboard/markdown.js");
  const root = document.createElement("div");
  root.className = "text";
  document.getElementById("turns").append(root);
  const text = new MarkdownText(root);
  let longest = 0;
  const measure = () => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) longest = Math.max(longest, walker.currentNode.data.length);
  };
  text.append(source);
  measure();
  await text.end();
  measure();
  root.querySelector("button")?.remove();
  const shown = root.textContent.trim();
  root.remove();
  return [longest, shown];
}
"""


@pytest.mark.django_db
def test_the_live_view_cuts_a_very_long_question(admin_client: Client) -> None:
    row = make_row()
    question = {"type": "message", "role": "user", "content": "x" * (SHOWN_CHARS + 5000)}
    InputItem.objects.create(response=row, position=0, item=question)
    page = admin_client.get(f"/live/{row.pk}").content.decode()
    assert "x" * SHOWN_CHARS in page
    assert "x" * (SHOWN_CHARS + 1) not in page
    assert "5,000 more characters" in page


@pytest.mark.django_db
def test_the_dashboard_reads_how_the_arguments_of_a_waiting_call_begin() -> None:
    until = timezone.now() + timedelta(minutes=5)
    long = json.dumps({"text": "y" * 1_000_000})
    ToolEvent.objects.create(
        response=make_row(status="in_progress", parked_until=until),
        call_id="call_1",
        name="guarded",
        attempt=1,
        arguments=long,
        expires_at=until,
        status=ToolStatus.AWAITING_APPROVAL,
        approver=Approver.OPERATOR,
    )
    [event] = lists.waiting_approvals()
    assert event.get_deferred_fields() == {"arguments", "output", "images"}
    assert vars(event)["first_arguments"] == long[: lists.SHOWN_ARGUMENT_CHARS + 1]


def test_json_of_megabytes_is_not_indented() -> None:
    assert pretty(json.dumps({"a": "z" * 50_000})).startswith('{\n  "a"')
    assert pretty(json.dumps({"a": "z" * INDENTED_CHARS})).startswith('{"a"')


@needs_chromium
@pytest.mark.any_database
def test_long_texts_are_on_the_page_in_pieces(browser: Browser, server: Server) -> None:
    """A browser shapes each text node as a whole: 50,000 Arabic letters, or marks on one letter, take it seconds."""
    operator = Operator(browser, server).log_in()
    blank = operator.goto("/chat?new")
    words = "\u0645\u0631\u062d\u0628\u0627 " * 1000
    for source in ("\u0645" * 5000, words, "\U0001f600" * 3000, f"```\n{'x' * 5000}\n```", "[" * 1_000_000):
        longest, shown = blank.evaluate(PIECES, source)
        assert longest <= 1001
        assert shown == source.strip("`\n ")
    _, shown = blank.evaluate(PIECES, "a" + "\u0301" * 5000)
    assert shown == "a" + "\u0301" * 24 + "…"
    operator.leave()
