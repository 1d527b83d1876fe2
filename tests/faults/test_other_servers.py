"""The same application under uvicorn and under plain Daphne: nothing durable depends on our server."""

from collections.abc import Callable

import pytest

from tests.support.checker import check_log
from tests.support.other_servers import ENSURE_ADMIN, PlainDaphne, Uvicorn
from tests.support.server import (
    Server,
    created_id,
    script,
    streaming,
    text,
)

pytestmark = [pytest.mark.any_database, pytest.mark.fault]


@pytest.mark.parametrize("kind", [Uvicorn, PlainDaphne])
def test_a_cut_stream_goes_on_and_is_resumed(make_server: Callable[..., Server], kind: type[Server]) -> None:
    server = make_server(kind)
    server.manage("shell", "-v0", "-c", ENSURE_ADMIN)
    asked = script({"say": "one two "}, {"gate": "go"}, {"say": "three"})
    with streaming(server, input=asked) as (_, received):
        response_id = created_id(next(received))
    server.open_gate("go")
    assert text(server.ended(response_id)) == "one two three"
    server.kill()
    server.start()
    check_log(server, response_id)


@pytest.mark.parametrize("kind", [Server, PlainDaphne])
def test_no_client_moves_the_root_of_the_site(make_server: Callable[..., Server], kind: type[Server]) -> None:
    """Daphne takes the root path from a header; links and redirects would lead where the client wants."""
    server = make_server(kind)
    server.manage("shell", "-v0", "-c", ENSURE_ADMIN)
    with server.http() as client:
        answer = client.get("/", headers={"Daphne-Root-Path": "/elsewhere"})
        page = client.get("/admin/login/", headers={"Daphne-Root-Path": "/elsewhere"})
    assert answer.headers["location"].startswith("/admin/login/")
    assert "/elsewhere" not in page.text
