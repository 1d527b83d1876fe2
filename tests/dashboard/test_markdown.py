"""Markdown that models write, in a real browser: what is shown of it, and that none of it runs."""

import html
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Operator, needs_chromium
from tests.support.server import Server, script
from tests.support.staff import logged_in, response_page

pytestmark = [needs_chromium, pytest.mark.any_database]

PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
ANSWER = f"""# A heading

Some **bold** words, `code` and [a link](https://example.com/page).

- one
- two

```python
print("<b>hello</b>")
```

| name | count |
|------|------:|
| a    |     1 |

![a remote picture](https://example.com/spy.png) ![a pixel]({PIXEL})
"""
FREEZE_MS = 1500  # of a busy machine; to parse the brackets takes an idle one longer
# Each tries to run something or to load something.
HOSTILE = {
    "an image tag": "<img src=x onerror=\"window.ran = 'img'\">",
    "a script": "<script>window.ran = 'script'</script>",
    "markup in a block": '<div onclick="window.ran = 1">\n\n<svg/onload="window.ran = 1">',
    "a frame": '<iframe srcdoc="<script>parent.ran = 1</script>"></iframe>',
    "a javascript link": "[x](javascript:window.ran=1)",
    "a javascript link in capitals": "[x](JaVaScRiPt:window.ran=1)",
    "a javascript link with a colon as an entity": "[x](javascript&colon;window.ran=1)",
    "a javascript link with a letter as an entity": "[y](&#106;avascript:window.ran=1)",
    "a javascript link with a tab": "[x](<java\tscript:window.ran=1>)",
    "a javascript link with a tab as an entity": "[y](<java&Tab;script:window.ran=1>)",
    "a javascript link with a line": "[x](<java&NewLine;script:window.ran=1>)",
    "a javascript link behind a control character": "[x](\x01javascript:window.ran=1)",
    "a javascript link behind such an entity": "[x](<&#1;javascript:window.ran=1>)",
    "a javascript link behind a wide space": "[x](<\u00a0javascript:window.ran=1>)",
    "a javascript link behind a space": "[y](< javascript:window.ran=1>)",
    "an autolink": "<javascript:window.ran=1> <data:text/html,x> <vbscript:x>",
    "a reference": "[x][a]\n\n[a]: javascript:window.ran=1",
    "a title": '[x](https://example.com "&quot; onmouseover=&quot;window.ran=1")',
    "a target that ends its attribute": '[x](https://example.com/"onmouseover="window.ran=1)',
    "a picture that ends its attribute": '![x](data:image/png;base64,"onload="window.ran=1)',
    "a name of a language": '```" onload="window.ran=1\nx\n```',
    "a page as data": "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "a page as an image": "![x](data:text/html,<script>window.ran=1</script>)",
    "a drawing as an image": "![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "a drawing as data": "[y](data:image/svg+xml,<svg/onload=window.ran=1>)",
    "a picture as the target of a link": f"[x]({PIXEL})",
    "a remote image": "![x](https://example.com/a.png) ![y](//example.com/b.png)",
    "an image of this server": "![z](/static/dashboard/icon.svg)",
    "a remote image in a link": "[![x](https://example.com/c.png)](https://example.com)",
    "a relative link": "[x](/admin/logout/) [y](//example.com) [z](http:admin) <a@b.c>",
}
NEVER_SHOWN = """
    const allowed = { A: ["href", "target", "rel"], IMG: ["src", "alt"], PRE: ["tabindex"] };
    const framed = { DIV: ["class", "tabindex"], BUTTON: ["type", "class", "title", "aria-label"] };
    const seen = [];
    for (const node of root.querySelectorAll("*")) {
      const names = { ...allowed, ...framed }[node.tagName] ?? ["class"];
      for (const name of node.getAttributeNames())
        if (!names.includes(name)) seen.push(`${node.tagName} ${name}`);
      if (/^(script|iframe|svg|style|form|input)$/i.test(node.tagName)) seen.push(node.tagName);
      if (node.href && !/^(https?|mailto):/.test(node.href)) seen.push(node.href);
      const isApart = node.rel === "noopener noreferrer" && node.target === "_blank";
      if (node.href && !isApart) seen.push(node.outerHTML);
      if (node.src && !node.src.startsWith("data:image/gif;base64,")) seen.push(node.src);
      node.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    }
"""
RENDER = """
async (sources) => {
  const { MarkdownText } = await import("/static/dashboard/markdown.js");
  const found = {};
  for (const [name, source] of Object.entries(sources)) {
    const root = document.createElement("div");
    root.className = "text";
    document.getElementById("turns").append(root);
    root.textContent = source;
    await new MarkdownText(root).end();
    CHECK
    const isRendered = root.classList.contains("markdown");
    found[name] = { seen, ran: window.ran ?? null, isRendered, text: root.textContent };
    root.remove();
  }
  return found;
}
""".replace("CHECK", NEVER_SHOWN)
# The longest time in which the page did nothing else than show a text.
BUSY = """
async ([piece, times, end]) => {
  const { MarkdownText } = await import("/static/dashboard/markdown.js");
  const source = piece.repeat(times) + end;
  const root = document.createElement("div");
  root.className = "text";
  document.getElementById("turns").append(root);
  root.textContent = source;
  root.offsetHeight; // the page has the source before it is rendered, as without script
  let last = performance.now(), longest = 0;
  const note = () => {
    longest = Math.max(longest, performance.now() - last);
    last = performance.now();
  };
  const beat = setInterval(note, 5);
  await new MarkdownText(root).end();
  clearInterval(beat);
  const isWhole = root.textContent.trim() === source.trim();
  root.remove();
  return { longest, isWhole };
}
"""
GROW = """
async ([source, size]) => {
  const { MarkdownText } = await import("/static/dashboard/markdown.js");
  const roots = [0, 1].map(() => document.createElement("div"));
  document.getElementById("turns").append(...roots);
  const [grown, whole] = roots.map((root) => new MarkdownText(root));
  let draws = 0, added = 0;
  const observer = new MutationObserver((changes) => {
    draws += 1;
    for (const change of changes) added += change.addedNodes.length;
  });
  grown.append(source.slice(0, size)); // what is not rendered yet is on the page as text
  await grown.draw();
  observer.observe(grown.root, { childList: true });
  for (let at = size; at < source.length; at += size) {
    grown.append(source.slice(at, at + size));
    if (at % (size * 8) === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  await grown.draw();
  const blocks = grown.root.childNodes.length;
  await grown.end();
  whole.append(source);
  await whole.end();
  const isSame = grown.root.innerHTML === whole.root.innerHTML;
  roots.forEach((root) => root.remove());
  return { isSame, draws, added, blocks };
}
"""


@pytest.fixture(scope="module")
def operator(browser: Browser, server: Server) -> Iterator[Operator]:
    operator = Operator(browser, server, permissions=["clipboard-read", "clipboard-write"]).log_in()
    yield operator
    operator.leave()


@pytest.fixture(scope="module")
def answered(server: Server) -> str:
    """A response with Markdown, and with reasoning in Markdown."""
    asked = script({"think": "I *must* think."}, {"say": ANSWER})
    body = server.openai().responses.create(model="hermes-agent", input=asked)
    return body.id


@pytest.fixture
def blank(operator: Operator) -> Page:
    return operator.goto("/chat?new")


def expect_copied(page: Page, source: str) -> None:
    is_copied = "source => navigator.clipboard.readText().then(text => text === source)"
    page.wait_for_function(is_copied, arg=source)


def check_shown(page: Page, text: Any) -> None:
    expect(text.locator("h3, h4")).to_have_text("A heading")
    expect(text.locator("strong")).to_have_text("bold")
    expect(text.locator("li")).to_have_text(["one", "two"])
    expect(text.locator("pre code")).to_have_text('print("<b>hello</b>")')
    expect(text.locator("td.align-right")).to_have_text("1")
    links = text.get_by_role("link")
    expect(links).to_have_text(["a link", "a remote picture"])
    expect(links.first).to_have_attribute("rel", "noopener noreferrer")
    expect(links.first).to_have_attribute("target", "_blank")
    expect(text.locator("img")).to_have_count(1)
    assert text.locator("img").evaluate("image => image.complete && image.naturalWidth") == 1
    text.get_by_role("button", name="Copy the code").click()
    expect(text.get_by_role("button", name="Copied")).to_be_visible()
    expect_copied(page, 'print("<b>hello</b>")\n')


def test_the_live_view_shows_markdown_and_copies_it(operator: Operator, answered: str) -> None:
    page = operator.goto(f"/live/{answered}")
    check_shown(page, page.locator("#log .from-assistant .text"))
    expect(page.locator("#log .reasoning em")).to_have_text("must")
    page.get_by_role("button", name="Copy the message").last.click()
    expect_copied(page, ANSWER)


def test_the_admin_shows_markdown_and_copies_it(operator: Operator, answered: str) -> None:
    page = operator.goto(response_page(answered))
    check_shown(page, page.locator(".hs-from-assistant .hs-text"))
    page.locator(".hs-from-assistant > .copy").click()
    expect_copied(page, ANSWER)
    page.get_by_text("reasoning", exact=True).click()
    expect(page.locator(".hs-call em")).to_have_text("must")


def test_the_playground_shows_markdown_and_the_question_as_typed(blank: Page) -> None:
    page = blank
    asked = script({"say": ANSWER}, {"say": "*end*"})
    page.fill("#text", asked)
    page.press("#text", "Enter")
    expect(page.locator(".from-user .text")).to_have_text(asked)
    expect(page.locator(".end .badge")).to_have_text("completed")
    expect(page.locator(".text[dir=auto]")).to_have_count(2)  # the direction of its first letter
    check_shown(page, page.locator(".from-assistant .text"))
    page.reload()
    check_shown(page, page.locator(".from-assistant .text"))
    page.locator(".from-user .copy").click()
    expect_copied(page, asked)


def test_nothing_hostile_runs_loads_or_leads_astray(operator: Operator, blank: Page) -> None:
    found = blank.evaluate(RENDER, HOSTILE)
    for name, result in found.items():
        assert result["isRendered"], name
        assert (result["seen"], result["ran"]) == ([], None), name
    assert found["an image tag"]["text"].strip() == HOSTILE["an image tag"]
    assert found["a javascript link"]["text"].strip() == HOSTILE["a javascript link"]
    assert not any(url.startswith("https://example.com") for url in operator.requested)


@pytest.mark.parametrize(
    ("piece", "times", "end", "is_text"),
    [
        pytest.param("*", 1_000_000, "", False, id="asterisks"),
        pytest.param("[", 1_000_000, "", True, id="brackets"),
        pytest.param("`", 1_000_000, "", False, id="backquotes"),
        pytest.param("- ", 10_000, "deep", True, id="nested lists"),
        pytest.param("- a\n", 26_000, "", True, id="a list without end"),
    ],
)
def test_the_page_answers_while_a_hostile_text_is_parsed(
    blank: Page, piece: str, times: int, end: str, is_text: bool
) -> None:
    result = blank.evaluate(BUSY, [piece, times, end])
    assert result["longest"] < FREEZE_MS
    # A million asterisks are a line, and as many backquotes begin a block of code.
    assert result["isWhole"] == is_text


def test_a_long_answer_is_not_rendered_from_its_start_again(blank: Page) -> None:
    source = (ANSWER + "\nA paragraph with *words* and `code`.\n\n") * 100
    result = blank.evaluate(GROW, [source, 200])
    assert result["isSame"]
    assert result["blocks"] > 1000
    assert result["added"] <= result["blocks"] + 3 * result["draws"]


def test_a_text_that_grows_letter_by_letter_ends_like_the_whole_text(blank: Page) -> None:
    later = "\n[a]: https://example.com/later\n\n1. x\n\n   y\n2. z\n\n"
    last = "Title\n=====\n\n> q\nlazy\n\n    code\n"
    result = blank.evaluate(GROW, [f"See [it][a].\n\n{ANSWER}{later}{last}", 1])
    assert result["isSame"]


def test_headings_are_one_step_below_those_that_they_belong_to(blank: Page) -> None:
    source = "## a\n\n#### b\n\n# c\n\n###### d\n\nlast"
    shown = blank.evaluate(
        """async (source) => {
          const { MarkdownText } = await import("/static/dashboard/markdown.js");
          const root = document.createElement("div");
          document.getElementById("turns").append(root);
          const text = new MarkdownText(root);
          for (const line of source.split("\\n")) { text.append(`${line}\\n`); await text.draw(); }
          await text.end();
          const found = [...root.querySelectorAll("h3, h4, h5, h6")].map((each) => each.tagName);
          root.remove();
          return found;
        }""",
        source,
    )
    assert shown == ["H4", "H5", "H4", "H5"]


def test_without_scripts_the_source_is_on_the_page(server: Server, answered: str) -> None:
    with logged_in(server) as staff:
        page = staff.page(response_page(answered))
    found = re.search(r'<div class="hs-text" dir="auto" data-markdown>(# A heading.*?)</div>', page, re.DOTALL)
    assert found is not None
    assert html.unescape(found[1]) == ANSWER
