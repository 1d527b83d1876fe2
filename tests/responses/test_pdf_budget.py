"""PDF files count as the text or the pages that the model reads, and summaries contain their text."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.migrated_database import Database
from tests.support.model_steps import USAGE
from tests.support.model_stub import Finish, ModelStub, Text
from tests.support.pdf_files import as_data_url, compressed_pdf, pdf
from tests.support.server import Server
from tests.support.small_windows import small_window_server
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

WORDS = "some plain words are here to be read " * 60  # about 500 tokens
LONG = compressed_pdf(f"The code word is XYZZY. {WORDS}", *[WORDS] * 9)  # small as it is, and 5,000 tokens
SUMMARY_PROMPT = "You write the memory of an assistant"
WINDOW = 8192
UNCOUNTED = dict.fromkeys(USAGE, 0)  # the usage is then what the turn estimates


def with_file(data: bytes, text: str = "Keep this.") -> dict[str, Any]:
    part = {"type": "input_file", "filename": "a.pdf", "file_data": as_data_url(data)}
    return {"role": "user", "content": [part, {"type": "input_text", "text": text}]}


def messages(model: ModelStub, number: int) -> str:
    return str(model.asked[number].body["messages"])


@pytest.fixture(scope="module")
def model() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(scope="module")
def server(database: Database, tmp_path_factory: pytest.TempPathFactory, model: ModelStub) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("pdf") / "home"
    config = "profiles: {text: {files: false}, files: {files: true}}\n"
    with small_window_server(database, home, model, WINDOW, config) as running:
        yield running


@pytest.fixture(params=["text", "files"])
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_pdf_counts_as_what_the_model_reads(server: Server, model: ModelStub, profile: str) -> None:
    model.play(Text("done"), Finish(usage=UNCOUNTED))
    body = {"input": [with_file(LONG)], "tools": [], "model": profile}
    with server.http() as client:
        counted = client.post("/v1/responses/input_tokens", json=body).json()["input_tokens"]
        turn = client.post("/v1/responses", json=body).json()
    assert counted > 4500
    assert abs(turn["usage"]["input_tokens"] - counted) <= 2


def test_a_summary_contains_the_text_of_a_pdf(server: Server, model: ModelStub, profile: str) -> None:
    model.asked.clear()
    for answer in ("noted", "the summary", "the answer"):
        model.play(Text(answer), Finish(usage=UNCOUNTED))
    history = [with_file(LONG), {"role": "assistant", "content": "Noted."}]
    talk = [{"role": "user", "content": WORDS}, {"role": "assistant", "content": "Yes."}] * 4
    question = {"role": "user", "content": "What is the code word?"}
    with server.http() as client:
        turn = client.post("/v1/responses", json={"input": [*history, *talk, question], "tools": [], "model": profile})
        assert turn.json()["status"] == "completed", turn.text
    summaries = [str(asked.body) for asked in model.asked if SUMMARY_PROMPT in str(asked.body)]
    assert "The code word is XYZZY." in summaries[0]
    assert "XYZZY" not in messages(model, -1)  # the summary stands for it


def test_a_compaction_that_is_asked_for_has_the_text_too(server: Server, model: ModelStub, profile: str) -> None:
    model.play(Text("the summary"), Finish(usage=UNCOUNTED))
    body = {"model": profile, "input": [with_file(pdf("the answer is 42"))]}
    with server.http() as client:
        made = client.post("/v1/responses/compact", json=body)
    assert made.status_code == 200, made.text
    assert "the answer is 42" in messages(model, -1)


def test_a_scanned_book_is_not_refused_for_its_bytes(server: Server, model: ModelStub, profile: str) -> None:
    model.play(Text("done"), Finish(usage=UNCOUNTED))
    scanned = pdf("A picture of a page.") + b"%" + b"x" * 400_000
    with server.http() as client:
        turn = client.post("/v1/responses", json={"input": [with_file(scanned)], "tools": [], "model": profile})
    assert turn.json()["status"] == "completed", turn.text
    [(ignored,)] = stored_rows(server, "response", "ignored", id=turn.json()["id"])
    assert "truncation" not in str(ignored)
