"""Web pages: none may use the server unless an operator names them, and then every answer says so."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.migrated_database import Database
from tests.support.raw_http import exchange
from tests.support.server import Server
from tests.support.settings_check import check_settings
from tests.support.stored_rows import count_rows, session_of, stored_rows

pytestmark = pytest.mark.any_database

PAGE = "https://chat.example.com"
CORS = "access-control-"


@pytest.fixture(scope="module")
def open_server(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("cors") / "h"
    running = database.server(home, Server, API_SERVER_CORS_ORIGINS=f"{PAGE}, app://desktop").start()
    yield running
    running.kill()


def cors(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith(CORS)}


def preflight(server: Server, path: str, origin: str, method: str = "POST", headers: str = "") -> httpx.Response:
    asked = {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers}
    return httpx.options(f"{server.url}{path}", headers=asked)


def test_by_default_no_page_is_let_in(server: Server) -> None:
    with server.http() as client:
        answer = client.get("/v1/models", headers={"Origin": PAGE})
    assert answer.status_code == 200
    assert cors(answer) == {}
    assert "vary" not in answer.headers
    refused = preflight(server, "/v1/responses", PAGE)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
    assert cors(refused) == {}


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/conversations/x", "/nowhere", "/admin/"])
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "DELETE"])
def test_a_preflight_is_answered_for_every_path(open_server: Server, path: str, method: str) -> None:
    answer = preflight(open_server, path, PAGE, method, "authorization, x-stainless-lang, x-evil")
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert method in answer.headers["access-control-allow-methods"].split(", ")
    assert answer.headers["access-control-max-age"] == "600"
    assert answer.headers["vary"] == "Origin"
    allowed = answer.headers["access-control-allow-headers"].split(", ")
    assert {"Authorization", "Content-Type", "Idempotency-Key", "X-Hermes-Session-Id", "X-Hermes-Session-Key"} <= set(
        allowed
    )
    assert {"Last-Event-ID", "X-Hermes-Turn-Policy", "x-stainless-lang"} <= set(allowed)
    assert "x-evil" not in allowed
    assert answer.headers["x-request-id"]


def test_every_answer_has_it(open_server: Server) -> None:
    page = {"Origin": PAGE}
    with open_server.http() as client:
        made = client.post("/v1/responses", json={"input": "x"}, headers=page)
        answers = [
            made,
            client.post("/v1/responses", json={"input": "x", "stream": True}, headers=page),
            client.get(f"/v1/responses/{made.json()['id']}?stream=true", headers=page),
            client.post("/v1/responses", content=b"{", headers=page),
            client.get("/v1/models", headers=page),
            client.get("/v1/models", headers=page | {"Authorization": "Bearer wrong"}),
            client.get("/nowhere", headers=page),
            client.get("/v1/models", headers=page | {"Host": "evil.example"}),
        ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 400, 200, 401, 404, 400]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == PAGE
        exposed = answer.headers["access-control-expose-headers"].split(", ")
        assert {"X-Hermes-Session-Id", "x-request-id", "Idempotency-Replayed"} <= set(exposed)
        assert "Origin" in answer.headers["vary"]
        assert "access-control-allow-credentials" not in answer.headers
    malformed = exchange(open_server, f"POST /v1/responses HTTP/1.1\r\nOrigin: {PAGE}\r\nbad header\r\n\r\n".encode())
    assert malformed.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{PAGE}.evil.example", "http://chat.example.com"])
def test_a_stranger_learns_nothing(open_server: Server, origin: str) -> None:
    with open_server.http() as client:
        answer = client.get("/v1/models", headers={"Origin": origin})
    assert cors(answer) == {}
    assert answer.headers["vary"] == "Origin"
    assert preflight(open_server, "/v1/models", origin).status_code == 403


def test_any_origin_where_a_key_is_asked_for(make_server: Callable[..., Server]) -> None:
    server = make_server(API_SERVER_CORS_ORIGINS="*")
    with server.http() as client:
        answer = client.get("/v1/models", headers={"Origin": PAGE})
    assert answer.headers["access-control-allow-origin"] == "*"
    assert preflight(server, "/v1/models", PAGE).headers["access-control-allow-origin"] == "*"
    assert preflight(server, "/v1/models", "null").status_code == 403


def test_without_a_key_a_strangers_page_can_not_even_send(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_AUTH="off")
    url = f"{server.url}/v1/responses"
    refused = httpx.post(url, json={"input": "x"}, headers={"Origin": PAGE})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
    assert httpx.post(url, json={"input": "x"}, headers={"Origin": server.url}).status_code == 200
    assert httpx.post(url, json={"input": "x"}).status_code == 200
    assert count_rows(server, "response") == 2


@pytest.mark.parametrize("value", ["chat.example.com", "https://x/path", "https://x,*", "https://a b", "null"])
def test_a_bad_list_stops_the_start(tmp_path: object, value: str) -> None:
    done = check_settings(tmp_path, API_SERVER_CORS_ORIGINS=value)  # type: ignore[arg-type]
    assert done.returncode != 0
    assert "API_SERVER_CORS_ORIGINS" in done.stderr.splitlines()[-1]


def test_any_page_without_any_key_is_refused(tmp_path: object) -> None:
    done = check_settings(tmp_path, API_SERVER_CORS_ORIGINS="*", HERMES_AUTH="off")  # type: ignore[arg-type]
    assert "API_SERVER_CORS_ORIGINS" in done.stderr.splitlines()[-1]


# -- X-Hermes-Session-Key --------------------------------------------------------------------
def test_a_session_key_is_stored_and_echoed(server: Server) -> None:
    key = "agent:whatsapp:dm:Zoë"
    sent = [(b"X-Hermes-Session-Key", key.encode()), (b"Authorization", f"Bearer {server.key}".encode())]
    answers = [
        httpx.post(f"{server.url}/v1/responses", json={"input": "x"}, headers=sent),
        httpx.post(f"{server.url}/v1/responses", json={"input": "x", "stream": True}, headers=sent),
        httpx.get(f"{server.url}/nowhere", headers=sent),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404]
    for answer in answers:
        [echoed] = [value for name, value in answer.headers.raw if name.lower() == b"x-hermes-session-key"]
        assert echoed.decode() == key
    response_id = answers[0].json()["id"]
    assert stored_rows(server, "response", "session_key", id=response_id) == [(key,)]
    assert stored_rows(server, "session", "key", id=session_of(server, response_id)) == [(key,)]


@pytest.mark.parametrize("key", [b"", b"x" * 257, b"tab\there"])
def test_a_bad_session_key_is_named(server: Server, key: bytes) -> None:
    for path in ("/v1/responses", "/v1/models", "/nowhere"):
        sent = [(b"X-Hermes-Session-Key", key), (b"Authorization", f"Bearer {server.key}".encode())]
        refused = httpx.get(f"{server.url}{path}", headers=sent)
        assert refused.status_code == 400
        assert refused.json()["error"]["param"] == "X-Hermes-Session-Key"
        assert "x-hermes-session-key" not in refused.headers
