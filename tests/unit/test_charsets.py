"""The character sets of pages: a closed list, read outside the server."""

import codecs
import time
from typing import Any

import pytest

from gateway_app.documents import charsets
from gateway_app.documents.charsets import decoded
from gateway_app.documents.extraction import extract


@pytest.mark.parametrize("name", ["punycode", "idna", "utf-7", "unicode_escape", "raw_unicode_escape", "hz", "x"])
@pytest.mark.parametrize("is_html", [True, False])
def test_a_codec_that_is_no_character_set_of_browsers_is_never_run(name: str, is_html: bool) -> None:
    body = f"<meta charset={name}>".encode() + b"-" + b"a" * 400_000
    began = time.process_time()
    assert decoded(body, f"text/html; charset={name}", is_html=is_html) == body.decode()
    assert decoded(body, "text/html", is_html=is_html) == body.decode()
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        ("grüße", "latin-1", "ISO-8859-1"),
        ("“quoted”", "cp1252", "latin1"),
        ("привет", "koi8-r", "koi8-r"),
        ("привет", "cp1251", "windows-1251"),
        ("日本語", "shift_jis", "Shift_JIS"),
        ("日本語", "euc-jp", "euc-jp"),
        ("中文", "gb2312", "gb2312"),
        ("中文", "big5", "big5"),
        ("한국어", "euc-kr", "euc-kr"),
        ("plain ü", "utf-8", "no-such-set"),
    ],
)
def test_a_page_is_read_in_the_set_that_its_header_or_itself_names(text: str, codec: str, label: str) -> None:
    assert decoded(text.encode(codec), f'text/plain; charset="{label}"', is_html=False) == text
    page = f'<meta http-equiv="Content-Type" content="text/html; charset={label}"><p>{text}'
    assert decoded(page.encode(codec), "text/html", is_html=True) == page


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_wins(codec: str) -> None:
    assert decoded("grüße".encode(codec), "text/plain; charset=latin1", is_html=False) == "grüße"


def test_a_text_that_is_about_character_sets_keeps_its_own() -> None:
    text = "Write charset=koi8-r: ü"
    assert decoded(text.encode(), "text/plain", is_html=False) == text


def test_every_label_stands_for_a_codec_of_text() -> None:
    table: dict[str, str] = charsets._CODECS
    for codec in set(table.values()):
        found: Any = codecs.lookup(codec)
        assert found._is_text_encoding, codec


async def test_a_page_is_decoded_by_the_worker() -> None:
    found = await extract("text", "grüße".encode("latin-1"), "", "text/plain; charset=latin1")
    assert found["text"] == "grüße"
    page = await extract("html", b"<meta charset=koi8-r><p>" + "привет".encode("koi8-r"), "", "text/html")
    assert page["text"] == "привет"
