"""Keys and owners: the id of another owner does not exist."""

from collections.abc import Callable

import openai
import pytest

from tests.support.people import create_key
from tests.support.server import Server


def test_no_key_a_wrong_key_and_a_revoked_key_are_the_same_401(server: Server) -> None:
    revoked = create_key(server, "soon-revoked")
    assert server.openai(revoked).models.list().data
    server.manage("revokekey", "soon-revoked")
    headers: list[dict[str, str]] = [{}]
    headers += [{"Authorization": value} for value in ("Bearer nope", f"Bearer {revoked}", "Basic x")]
    for header in headers:
        for method, path in (("GET", "/v1/models"), ("POST", "/v1/responses"), ("GET", "/v1/responses/x?stream=true")):
            with server.http() as client:
                client.headers.pop("Authorization")
                answer = client.request(method, path, headers=header, json={"input": "x"} if method == "POST" else None)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
            assert answer.headers["www-authenticate"] == "Bearer"


def test_the_scheme_may_be_written_in_any_case(server: Server) -> None:
    with server.http() as client:
        assert client.get("/v1/models", headers={"Authorization": f"bearer {server.key}"}).status_code == 200


def test_health_needs_no_key(server: Server) -> None:
    with server.http() as client:
        client.headers.pop("Authorization")
        for path in ("/health", "/v1/health"):
            assert client.get(path).json()["status"] == "ok"


def test_a_foreign_response_is_a_404_in_every_verb(server: Server, other_tenant: str) -> None:
    response_id = server.openai().responses.create(model="hermes-agent", input="mine").id
    with server.http(other_tenant) as client:
        answers = [
            client.get(f"/v1/responses/{response_id}"),
            client.get(f"/v1/responses/{response_id}?stream=true"),
            client.post(f"/v1/responses/{response_id}/cancel"),
            client.delete(f"/v1/responses/{response_id}"),
            client.post("/v1/responses", json={"input": "x", "previous_response_id": response_id}),
        ]
        unknown = client.get("/v1/responses/resp_unknown")
    assert [answer.status_code for answer in answers] == [404] * 5
    foreign, missing = answers[0].json()["error"], unknown.json()["error"]
    assert foreign == {**missing, "message": foreign["message"]}
    assert server.body(response_id)["status"] == "completed"


def test_two_owners_may_use_the_same_session_id(server: Server, other_tenant: str) -> None:
    header = {"X-Hermes-Session-Id": "shared-name"}
    for key in (server.key, other_tenant):
        client = server.openai(key)
        first = client.responses.create(model="hermes-agent", input="one", extra_headers=header)
        assert "Before that" not in first.output_text
        second = client.responses.create(model="hermes-agent", input="two", extra_headers=header)
        assert 'you wrote 1 times, first: "one"' in second.output_text


def test_models_are_listed_and_read(server: Server) -> None:
    client = server.openai()
    assert next(iter(client.models.list())).id == "hermes-agent"
    assert client.models.retrieve("hermes-agent").id == "hermes-agent"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-9")


def test_the_advertised_name_and_lenient_models_are_settings(make_server: Callable[..., Server]) -> None:
    server = make_server(API_SERVER_MODEL_NAME="house", HERMES_UNKNOWN_MODEL="default", HERMES_AUTH="off")
    client = server.openai("any")
    assert [model.id for model in client.models.list()] == ["house"]
    assert client.responses.create(input="x").model == "house"
    assert client.responses.create(input="x", model="gpt-9").model == "house"
