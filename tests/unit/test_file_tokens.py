"""Files count by what a model reads of them, without being read whole."""

import base64

import pytest

from responses_app.protocol.file_tokens import TOKENS_PER_PAGE, file_tokens, pdf_tokens
from responses_app.protocol.items import ContentPart, Item
from responses_app.protocol.token_estimate import text_tokens
from tests.support.pdf_files import as_data_url, pdf


def counted(data: bytes) -> int:
    return file_tokens(part_of(data), text_tokens)


def part_of(data: bytes) -> ContentPart:
    return {"type": "input_file", "filename": "x", "file_data": as_data_url(data, "text/plain")}


@pytest.mark.parametrize("text", ["plain words of a text ", "渡り鳥が空を飛ぶ", "Привет, мир. ", "x"])
@pytest.mark.parametrize("repeats", [1, 20_000])
def test_a_text_file_counts_as_its_text(text: str, repeats: int) -> None:
    expected = text_tokens(text * repeats)
    assert counted((text * repeats).encode()) == pytest.approx(expected, rel=0.05, abs=2)


def test_a_pdf_counts_by_its_pages() -> None:
    assert counted(pdf("one", "two", "three")) == 3 * TOKENS_PER_PAGE
    assert counted(pdf("one") + b"%" + b"x" * 500_000) == TOKENS_PER_PAGE


def test_pages_that_can_not_be_seen_are_judged_by_the_size() -> None:
    assert counted(b"%PDF-1.7\n" + b"\x01" * 200_000) == 5 * TOKENS_PER_PAGE


def test_other_files_count_by_their_size() -> None:
    data = bytes(range(256)) * 100
    assert counted(data) == len(base64.b64encode(data)) // 6
    assert file_tokens({"type": "input_file", "file_data": "no base64!"}, text_tokens) == 1


def test_pdf_files_are_found_among_the_parts_of_messages() -> None:
    message: Item = {"type": "message", "role": "user", "content": [part_of(pdf("a")), part_of(b"text")]}
    assert pdf_tokens([message, {"type": "message", "role": "user", "content": "text"}]) == TOKENS_PER_PAGE
