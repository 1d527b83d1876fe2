"""The readable text of a web page. Only the worker runs this: some pages take the parser very long."""

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

from gateway_app.documents.charsets import decoded

_SKIPPED = frozenset(
    ("script", "style", "noscript", "template", "svg", "iframe", "canvas", "select", "button")
)
_BESIDE = frozenset(("nav", "footer", "aside"))  # left out where the page marks its text
_BLOCKS = frozenset(
    (
        *("address", "article", "blockquote", "br", "dd", "div", "dl", "dt", "fieldset", "figure"),
        *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main"),
        *("nav", "ol", "p", "pre", "section", "table", "tr", "ul"),
    )
)
_MAIN = ("main", "article")
_MARKS = {"h1": "# ", "h2": "## ", "h3": "### ", "h4": "#### ", "li": "- "}


def read_html(data: bytes, address: str, content_type: str) -> dict[str, str]:
    source = decoded(data, content_type, is_html=True)
    page = _Page(address, is_whole=not re.search(r"<(main|article)[\s>]", source, re.IGNORECASE))
    page.feed(source)
    page.close()
    return {"text": _tidy("".join(page.pieces)), "title": " ".join("".join(page.title).split())}


class _Page(HTMLParser):
    def __init__(self, url: str, *, is_whole: bool) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.title: list[str] = []
        self._url = url
        self._is_whole = is_whole
        self._main_depth = 0
        self._skipped: list[str] = []  # the open elements whose text is left out
        self._in_title = False
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SKIPPED or (tag in _BESIDE and not self._is_whole):
            self._skipped.append(tag)
        elif tag == "title":
            self._in_title = True
        elif tag in _MAIN:
            self._main_depth += 1
        elif tag == "a":
            self._open_link(dict(attrs).get("href") or "")
        if tag in _BLOCKS:
            self._add("\n" + _MARKS.get(tag, ""))
        elif tag in ("td", "th"):
            self._add(" | ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._skipped:
            while self._skipped.pop() != tag:
                pass
        elif tag == "title":
            self._in_title = False
        elif tag in _MAIN:
            self._main_depth = max(0, self._main_depth - 1)
        elif tag == "a" and self._link:
            self._add(f"]({self._link})")
            self._link = ""
        if tag in _BLOCKS:
            self._add("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        else:
            self._add(data)

    def _open_link(self, target: str) -> None:
        try:
            link = urljoin(self._url, target.strip())
        except ValueError:
            return
        if link.startswith(("http://", "https://")) and not self._link and self._is_shown:
            self._link = link
            self._add("[")

    @property
    def _is_shown(self) -> bool:
        return not self._skipped and (self._is_whole or self._main_depth > 0)

    def _add(self, text: str) -> None:
        if self._is_shown:
            self.pieces.append(text)


def _tidy(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
