"""A key that is bound to profiles uses exactly those."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support.people import create_key
from tests.support.server import Server

pytestmark = pytest.mark.any_database
_BIND = """
from responses_app.models import ApiKey, Profile
key = ApiKey.objects.get(name={key!r})
key.profiles.set([Profile.objects.get_or_create(name=name)[0] for name in {profiles!r}])
"""


@pytest.fixture(scope="module", autouse=True)
def another_profile(server: Server) -> None:
    bound(server, "another-tenant", "elsewhere").close()


def bound(server: Server, name: str, *profiles: str) -> httpx.Client:
    secret = create_key(server, name)
    server.manage("shell", "-v0", "-c", _BIND.format(key=name, profiles=list(profiles)))
    return server.http(secret)


@pytest.fixture(scope="module")
def single(server: Server) -> Iterator[httpx.Client]:
    with bound(server, "one-profile", "research") as client:
        yield client


@pytest.fixture(scope="module")
def several(server: Server) -> Iterator[httpx.Client]:
    with bound(server, "two-profiles", "research", "writing") as client:
        yield client


def names(client: httpx.Client) -> list[str]:
    return [model["id"] for model in client.get("/v1/models").json()["data"]]


def test_it_sees_its_profiles_alone(single: httpx.Client, several: httpx.Client) -> None:
    assert names(single) == ["research"]
    assert names(several) == ["research", "writing"]
    assert single.get("/v1/capabilities").json()["model"] == "research"
    assert single.get("/v1/models/hermes-agent").status_code == 404


def test_without_a_model_it_means_its_only_profile(single: httpx.Client) -> None:
    made = single.post("/v1/responses", json={"input": "hello"})
    assert made.json()["model"] == "research"
    chat = single.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "hello"}]})
    assert chat.json()["model"] == "research"


def test_with_several_profiles_the_model_must_be_named(several: httpx.Client) -> None:
    refused = several.post("/v1/responses", json={"input": "hello"})
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error["param"] == "model"
    assert "research, writing" in error["message"]
    assert several.post("/v1/responses", json={"input": "hello", "model": "writing"}).status_code == 200


@pytest.mark.parametrize("model", ["default", "hermes-agent", "elsewhere", "unheard-of"])
def test_the_default_agent_and_other_profiles_do_not_exist_for_it(single: httpx.Client, model: str) -> None:
    chat = {"messages": [{"role": "user", "content": "hello"}], "model": model}
    for path, body in (
        ("/v1/responses", {"input": "hello", "model": model}),
        ("/v1/responses/compact", {"input": "hello", "model": model}),
        ("/v1/chat/completions", chat),
        ("/v1/runs", {"input": "hello", "model": model}),
        ("/api/sessions", {"model": model}),
    ):
        answer = single.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found"), path


def test_a_key_bound_to_the_default_profile_may_use_it(server: Server) -> None:
    with bound(server, "with-default", "default", "research") as client:
        assert names(client) == ["hermes-agent", "research"]
        assert client.post("/v1/responses", json={"input": "hello"}).json()["model"] == "hermes-agent"
    server.manage("shell", "-v0", "-c", _DISABLE.format(name="default", flag=False))


_DISABLE = "from responses_app.models import Profile; Profile.objects.filter(name={name!r}).update(is_enabled={flag})"


def test_a_key_whose_profile_is_disabled_may_use_nothing(server: Server) -> None:
    with bound(server, "orphaned", "short-lived") as client:
        server.manage("shell", "-v0", "-c", _DISABLE.format(name="short-lived", flag=False))
        refused = client.post("/v1/responses", json={"input": "hello"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "no_model_allowed")
        assert names(client) == []
