"""The text of files that clients send: read elsewhere, and only so much of it."""

import asyncio
import base64
import time

import pytest

from gateway_app.documents import extraction
from gateway_app.documents.extraction import Unreadable, extract
from gateway_app.documents.files import file_text
from gateway_app.documents.limits import MAX_OUTPUT_BYTES, MAX_TEXT_CHARS
from tests.support.pdf_files import as_data_url, pdf, pdf_bomb


async def test_a_pdf_is_read_page_by_page() -> None:
    text = await file_text("a.pdf", as_data_url(pdf("first page", "second page")))
    assert text == '[file "a.pdf"]\n[page 1]\nfirst page\n\n[page 2]\nsecond page\n[end of the file]'


@pytest.mark.parametrize("data", ["grüße".encode(), b"\xef\xbb\xbf" + "grüße".encode(), "grüße".encode("utf-16")])
async def test_a_text_file_of_any_name_is_its_text(data: bytes) -> None:
    assert await file_text("a.xyz", base64.b64encode(data).decode()) == '[file "a.xyz"]\ngrüße\n[end of the file]'


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"\x89PNG\0\0", "neither a text file nor a PDF"), (b"%PDF-1.4\ngarbage", "damaged")],
)
async def test_other_files_say_what_is_wrong(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        await file_text("x", base64.b64encode(data).decode())


async def test_a_long_text_is_cut_with_a_note() -> None:
    text = await file_text("x", base64.b64encode(b"a" * (MAX_TEXT_CHARS + 1)).decode())
    assert f"a\n[cut: the first {MAX_TEXT_CHARS} characters are shown]" in text


async def test_a_pdf_that_unpacks_to_too_much_ends_in_its_own_process() -> None:
    """The event loop goes on meanwhile."""
    bomb = pdf_bomb(200_000_000)
    assert len(bomb) < 100_000
    ticks = 0
    reading = asyncio.ensure_future(extract("pdf", bomb))
    began = time.monotonic()
    while not reading.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert time.monotonic() - began < 40
    assert ticks > 3
    error = reading.exception()
    assert isinstance(error, Unreadable) or "without text" in reading.result()["text"]


async def test_a_document_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(Unreadable, match="longer than"):
        await extract("html", b"<p>x", "http://x", max_secs=0.001)


async def test_the_worker_cuts_the_text_itself() -> None:
    """A page of many links is much longer as text: each of them gets the whole address."""
    page = b"<title>" + b"t" * 5_000 + b"</title>" + b"<a href=x>x</a>" * 20_000
    output = await extraction._run(page, "html", "http://site.test/" + "a" * 500 + "/", "text/html")
    assert len(output["text"]) < MAX_TEXT_CHARS + 100
    assert output["text"].endswith(f"[cut: the first {MAX_TEXT_CHARS} characters are shown]")
    assert len(output["title"]) == 500


async def test_the_server_reads_only_so_much_from_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "import os\nwhile True: os.write(1, b'x' * 65536)"
    monkeypatch.setattr(extraction, "_START", endless)
    with pytest.raises(Unreadable, match="too long"):
        await extract("text", b"x")


async def test_the_longest_text_fits() -> None:
    found = await extract("text", b"\x01" * (MAX_TEXT_CHARS + 5), "", "text/plain")
    assert found["text"].startswith("\x01" * MAX_TEXT_CHARS)
    assert MAX_OUTPUT_BYTES > 6 * MAX_TEXT_CHARS
