"""The search index of a running server: written after the end, erased with the content, also on disk."""

from collections.abc import Callable

import pytest

from tests.support.server import Server, eventually, script
from tests.support.staff import RESPONSES, logged_in
from tests.support.stored_rows import count_rows, until_merged

FILES_SECS = 60
WORD = "quagsire7d1f33c8a9"


@pytest.fixture
def swept(make_server: Callable[..., Server]) -> Server:
    return make_server(HERMES_SWEEP_SECS="0.05")


def in_files(server: Server, word: str) -> bool:
    """Of a word in the index, its first letters may be stored with the word before it."""
    tail = word[-10:].encode()
    files = [server.home / f"hermes.sqlite3{suffix}" for suffix in ("", "-wal")]
    return any(tail in file.read_bytes() for file in files if file.exists())


def test_an_answer_is_found_after_its_end_and_gone_with_its_content(swept: Server) -> None:
    response_id = swept.openai().responses.create(input=script({"say": f"The word is {WORD}."})).id
    unstored = swept.openai().responses.create(input=f"not {WORD}", store=False).id
    until_merged(swept, response_id)
    with logged_in(swept) as operator:
        page = operator.page(RESPONSES, q=WORD)
        assert response_id in page
        assert unstored not in page
        swept.openai().responses.delete(response_id)
        assert response_id not in operator.page(RESPONSES, q=WORD)
    assert count_rows(swept, "searchentry") == 0
    if "DATABASE_URL" not in swept.env:
        eventually(lambda: not in_files(swept, WORD), FILES_SECS, "clean files")


def test_what_a_command_prunes_without_a_server_is_gone_from_the_files(swept: Server) -> None:
    if "DATABASE_URL" in swept.env:
        pytest.skip("PostgreSQL has no such files")
    ids = [swept.openai().responses.create(input=f"{WORD} {number}").id for number in range(3)]
    for response_id in ids:
        until_merged(swept, response_id)
    assert in_files(swept, WORD)
    swept.kill()
    swept.manage("prune_responses", "--days", "0")
    assert not in_files(swept, WORD)
