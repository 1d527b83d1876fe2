"""An application that breaks off never looks complete to its client, and never spoils the server."""

import http.client
from collections.abc import Callable

import httpx
import pytest

from tests.support.raw_http import connected, read_answer
from tests.support.server import Server, eventually

pytestmark = pytest.mark.any_database

GET = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
KILLED_AFTER_SECS = 10  # Daphne's patience with an application whose client left


@pytest.fixture
def server(make_server: Callable[..., Server]) -> Server:
    return make_server(TEST_ASGI_APPLICATION="tests.support.misbehaving_app.application")


@pytest.mark.parametrize("path", [b"raise_before_the_start", b"return_before_the_start"])
def test_no_answer_at_all_is_a_500_in_json(server: Server, path: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(GET % path)
        answer = read_answer(connection)
    assert answer.status == 500
    assert answer.error()["code"] == "internal_error"


@pytest.mark.parametrize("path", [b"raise_after_the_start", b"return_after_the_start", b"broken_stream"])
def test_half_an_answer_is_cut(server: Server, path: bytes) -> None:
    with connected(server) as connection:
        connection.sendall(GET % path)
        with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
            read_answer(connection)


def test_the_housekeeping_outlives_an_exception(server: Server) -> None:
    for path in (b"raise_after_the_start", b"return_after_the_start"):
        with connected(server) as connection:
            connection.sendall(GET % path)
            with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
                read_answer(connection)
    with connected(server) as connection:
        connection.sendall(GET % b"stay_for_ever")
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
    killed = server.home / "stay_for_ever"
    eventually(killed.exists, KILLED_AFTER_SECS + 5, "the end of an application whose client left")
    assert httpx.get(f"{server.url}/raise_before_the_start").status_code == 500
    assert httpx.get(f"{server.url}/health").status_code == 200
    assert "unruly, late" in server.log
