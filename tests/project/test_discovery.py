"""What a client can learn before it asks: models, capabilities and tools."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.migrated_database import Database
from tests.support.people import create_key
from tests.support.server import Server, eventually
from tests.support.settings_check import check_settings

pytestmark = pytest.mark.any_database

PROFILES: dict[str, Any] = {
    "default": {"instructions": "You are the default."},
    "research": {"instructions": "You research.", "toolset": ["calculate"], "tool_items": "mcp_call"},
    "both": {"instructions": "From the file."},
}


def start(database: Database, home: Path, profiles: Any, **env: str) -> Server:
    server = database.server(home, Server, **env)
    (server.home / "config.yaml").write_text(yaml.safe_dump({"profiles": profiles}))
    return server.start()


def add_profile(server: Server, *, key: str = "", **fields: Any) -> None:
    link = f"ApiKey.objects.get(name={key!r}).profiles.add(made)" if key else "made"
    code = f"from responses_app.models import ApiKey, Profile; made = Profile.objects.create(**{fields!r}); {link}"
    server.manage("shell", "-v0", "-c", code)


def models(server: Server, key: str | None = None) -> list[str]:
    return [model.id for model in server.openai(key).models.list().data]


@pytest.fixture
def profiled(database: Database, tmp_path: Path) -> Iterator[Server]:
    server = start(database, tmp_path / "home", PROFILES)
    yield server
    server.kill()


def test_profiles_come_from_rows_and_from_the_file(profiled: Server) -> None:
    add_profile(profiled, name="row", instructions="From a row.")
    add_profile(profiled, name="both", instructions="Never read.")
    add_profile(profiled, name="off", is_enabled=False)
    assert models(profiled) == ["hermes-agent", "both", "research", "row"]
    client = profiled.openai()
    for model, words in (
        ("hermes-agent", "You are the default."),
        ("default", "You are the default."),
        ("research", "You research."),
        ("both", "From the file."),
        ("row", "From a row."),
    ):
        answer = client.responses.create(model=model, input=f"who is {model}")
        assert answer.model == ("hermes-agent" if model == "default" else model)
        assert profiled.model_calls(f"who is {model}")[0]["instructions"] == words
    with profiled.http() as http:
        assert http.get("/v1/models/research").json()["id"] == "research"
        assert http.get("/v1/models/off").json()["error"]["code"] == "model_not_found"


def test_a_profile_of_the_file_has_its_tools_and_their_form(profiled: Server) -> None:
    answer = profiled.openai().responses.create(model="research", input="calculate 6*7")
    assert [item.type for item in answer.output if "call" in item.type] == ["mcp_call"]
    with profiled.http() as http:
        [own] = http.get("/v1/toolsets", params={"model": "research"}).json()["data"]
        assert (own["name"], own["tools"], own["enabled"]) == ("hermes", ["calculate"], True)
        assert http.get("/v1/toolsets", params={"model": "unknown"}).status_code == 404


@pytest.mark.parametrize("unknown", ["reject", "default"])
def test_a_key_sees_and_uses_only_its_profiles(database: Database, tmp_path: Path, unknown: str) -> None:
    server = start(database, tmp_path / "home", PROFILES, HERMES_UNKNOWN_MODEL=unknown)
    try:
        secret = create_key(server, "narrow")
        assert models(server, secret) == ["hermes-agent", "both", "research"]
        add_profile(server, name="research", key="narrow")
        add_profile(server, name="secret", instructions="hush")
        # The server keeps what it has read of a profile for a tenth of a second.
        eventually(lambda: models(server, secret) == ["research"], what="the list of one profile")
        with server.http(secret) as http:
            answers = [
                http.post("/v1/responses", json={"model": name, "input": f"who is {name}"})
                for name in ("both", "secret", "unknown", "hermes-agent")
            ]
        assert {answer.status_code for answer in answers} == {404}
        assert server.model_calls("who is") == []
        server.manage("shell", "-c", "from responses_app.models import Profile; Profile.objects.all().delete()")
        # A profile that is deleted does not lift the limit.
        eventually(lambda: models(server, secret) == [], what="the empty list")
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("profiles", "place"),
    [
        (["a"], "profiles"),
        ({7: {}}, "profiles"),
        ({"a": "b"}, "profiles.a"),
        ({"a": {"colour": "red"}}, "profiles.a.colour"),
        ({"a": {"instructions": 7}}, "profiles.a.instructions"),
        ({"a": {"toolset": "calculate"}}, "profiles.a.toolset"),
        ({"a": {"toolset": [7]}}, "profiles.a.toolset[0]"),
        ({"a": {"toolset": ["calculat"]}}, "profiles.a.toolset[0] is 'calculat', which is no tool; write calculate."),
        ({"a": {"toolset": ["other.read"]}}, "profiles.a.toolset[0] is 'other.read', which is no tool and no MCP"),
        ({"a": {"tool_items": "both"}}, "profiles.a.tool_items"),
        ({"a": {"client_tools": "both"}}, "profiles.a.client_tools"),
        ({"a": {"approval_wait": "yes"}}, "profiles.a.approval_wait"),
        ({"a": {"context_length": -1}}, "profiles.a.context_length"),
        ({"a": {"provider": "oracle"}}, "profiles.a.provider"),
        ({"a": {"provider": "openai", "model": "m"}}, "profiles.a.api_key"),
        ({"a": {"base_url": "ftp://x", "model": "m"}}, "profiles.a.base_url"),
        ({"a": {"base_url": "http://x/v1", "model": "m", "api_mode": "telnet"}}, "profiles.a.api_mode"),
        ({"a": {"fallback_models": "m"}}, "profiles.a: fallback_models"),
    ],
)
def test_a_bad_profile_stops_the_start_and_is_named(tmp_path: Path, profiles: Any, place: str) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"profiles": profiles}))
    done = check_settings(tmp_path)
    assert done.returncode != 0
    assert f"config.yaml: {place}" in done.stderr.splitlines()[-1]


def test_a_toolset_may_name_tools_that_are_off_and_mcp_servers_that_are_down(tmp_path: Path) -> None:
    toolset = ["terminal", "files", "files.read_file", "search"]
    servers = {"files": {"command": "no-such-program"}, "search": {"url": "https://x.example/mcp", "enabled": False}}
    config = {"profiles": {"a": {"toolset": toolset}}, "mcp_servers": servers}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
    done = check_settings(tmp_path, HERMES_TERMINAL="off")
    assert done.returncode == 0, done.stderr


def test_capabilities_promise_what_is_there_and_nothing_else(server: Server) -> None:
    with server.http() as http:
        body = http.get("/v1/capabilities").json()
        assert body["object"] == "hermes.api_server.capabilities"
        assert (body["platform"], body["model"]) == ("hermes-agent", "hermes-agent")
        assert body["auth"] == {"type": "bearer", "required": True}
        features = body["features"]
        assert features["responses_streaming"] is True
        assert features["audio_api"] is False
        assert features["idempotency"]["retention_seconds"] == 86400
        assert features["session_key_header"] == "X-Hermes-Session-Key"
        assert features["chat_completions"] is ("chat_completions" in body["endpoints"])
        assert body["endpoints"]["responses"] == {"method": "POST", "path": "/v1/responses"}
        for name, endpoint in body["endpoints"].items():
            path = re.sub(r"\{\w+\}", "x", endpoint["path"])
            answer = http.request(endpoint["method"], path, json={})
            assert answer.status_code != 405, name
            assert answer.status_code != 404 or answer.json()["error"]["code"] != "unknown_path", name


def test_capabilities_name_the_model_lock_of_a_session(server: Server) -> None:
    with server.http() as http:
        session_id = http.post("/api/sessions", json={}).json()["session"]["id"]
        locked = http.post(f"/api/sessions/{session_id}/model", json={"model": "hermes-agent"})
        assert locked.json()["object"] == "hermes.session.model_lock"
        body = http.get("/v1/capabilities").json()
    assert body["features"]["session_model_lock"] is True
    assert body["endpoints"]["session_model"] == {"method": "POST", "path": "/api/sessions/{session_id}/model"}


def test_discovery_needs_a_key(server: Server) -> None:
    with server.http("wrong") as http:
        for path in ("/v1/models", "/v1/capabilities", "/v1/toolsets"):
            assert http.get(path).status_code == 401


def test_toolsets_list_what_the_agent_has(make_server: Callable[..., Server]) -> None:
    with make_server(HERMES_TERMINAL="off").http() as http:
        body = http.get("/v1/toolsets").json()
    assert (body["object"], body["platform"]) == ("list", "api_server")
    tools = body["data"][0]["tools"]
    assert {"calculate", "read_file"} <= set(tools)
    assert "terminal" not in tools
    assert not [name for name in tools if name.startswith("_")]
