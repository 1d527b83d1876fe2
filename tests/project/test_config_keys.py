"""config.yaml that people get right: a mistyped key never starts the server on another model than the one meant."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway_app.config import hermes_keys, known_keys
from gateway_app.config.config_file import check_config, default_provider
from gateway_app.config.environment import Env, read_config
from gateway_app.config.known_keys import ignored_keys
from gateway_app.config.mcp import read_mcp_servers
from gateway_app.config.model_options import OPTIONS
from gateway_app.config.models import Model, read_fallbacks
from gateway_app.config.profiles import read_profiles
from tests.support.server import Server, eventually
from tests.support.settings_check import check_settings

REMOTE: Model = {
    "provider": "custom",
    "model": "m",
    "base_url": "http://127.0.0.1:1/v1",
    "api_key": "",
    "api_mode": "chat_completions",
    "options": {},
}
PROVIDERS = ("builtin", "custom", "ollama")


@pytest.mark.parametrize(
    ("config", "reported"),
    [
        ({"fallback_model": ["m2"]}, "fallback_model is unknown; write fallback_models"),
        ({"fallback": ["m2"]}, "fallback is unknown; write fallback_models"),
        ({"profile": {}}, "profile is unknown; write profiles"),
        ({"Model": {}}, "Model is unknown; write model"),
        ({"models": {}}, "models is unknown; write model"),
        ({"mcpServers": {}}, "mcpServers is unknown; write mcp_servers"),
        ({"provider": "ollama"}, "provider is unknown; write model.provider"),
        ({"model": {"provder": "ollama"}}, "model.provder is unknown; write provider"),
        ({"model": {"url": "http://x/v1"}}, "model.url is unknown; write base_url"),
        ({"model": {"temprature": 1}}, "model.temprature is unknown; write temperature"),
        ({"model": {"who": "knows"}}, "model.who is not one of provider, model, base_url"),
        ({"model": ["m"]}, "model must be a mapping, or a model's name"),
        ({"model": {"default": "m", "model": "n"}}, "model: set default or model, not both"),
        ({"platforms": {"api-server": {}}}, "platforms.api-server is unknown; write api_server"),
        ({"platforms": {"api_server": {"model": "x"}}}, "platforms.api_server.model is unknown; write model_name"),
        ({"platforms": ["api_server"]}, "platforms must be a mapping"),
        ({"platforms": {"api_server": True}}, "platforms.api_server must be a mapping"),
    ],
)
def test_a_wrong_key_is_refused_and_the_right_one_named(config: dict[str, Any], reported: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        check_config(config, {})
    assert str(refused.value).startswith(f"config.yaml: {reported}")


def test_a_wrong_key_of_a_profile_a_fallback_or_an_mcp_server_names_the_right_one() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"config\.yaml: profiles\.a\.instruction is unknown; write instr"):
        read_profiles({"a": {"instruction": "Be kind."}}, (REMOTE,), PROVIDERS)
    with pytest.raises(ImproperlyConfigured, match=r"config\.yaml: fallback_models\[0\]\.modle is unknown; write mod"):
        read_fallbacks([{"modle": "m2"}], REMOTE, PROVIDERS)
    with pytest.raises(ValueError, match=r"config\.yaml: mcp_servers\.files\.header is unknown; write headers"):
        read_mcp_servers({"mcp_servers": {"files": {"url": "http://x", "header": {}}}})


def test_a_filter_of_mcp_tools_is_not_ignored() -> None:
    """Hermes has it, and without it the model would get tools that the operator left out."""
    with pytest.raises(ValueError, match=r"mcp_servers\.files\.tools is not one of"):
        read_mcp_servers({"mcp_servers": {"files": {"command": "x", "tools": {"include": ["read"]}}}})


def test_keys_of_hermes_and_of_its_next_version_are_ignored_and_listed() -> None:
    config = check_config(
        {
            "_config_version": 50,
            "model": {"provider": "ollama", "default": "m", "streaming": True},
            "terminal": {"backend": "local"},
            "a_key_of_next_year": 1,
            "platforms": {"telegram": {"enabled": True}, "api_server": {"port": 8642, "model_name": "x"}},
            "mcp_servers": {"files": {"command": "x", "connect_timeout": 60}},
        },
        {},
    )
    assert ignored_keys(config) == (
        "terminal",
        "a_key_of_next_year",
        "model.streaming",
        "platforms.telegram",
        "platforms.api_server.port",
        "mcp_servers.files.connect_timeout",
    )


def test_no_key_of_hermes_is_taken_for_a_mistake() -> None:
    every_key = dict.fromkeys(hermes_keys.TOP_LEVEL)
    assert len(every_key) > 100
    assert not known_keys.TOP_LEVEL.problem(every_key, "")
    assert not set(known_keys.TOP_LEVEL.keys) & hermes_keys.TOP_LEVEL


def test_every_option_of_a_model_is_a_known_key() -> None:
    assert tuple(OPTIONS) == known_keys.OPTION_KEYS


# -- which model answers ----------------------------------------------------------------
def test_a_model_is_a_name_where_its_provider_is_known() -> None:
    assert check_config({"model": "llama3.2"}, {"HERMES_PROVIDER": "ollama"})["model"] == {"default": "llama3.2"}
    assert check_config({"model": {"model": "m"}}, {})["model"] == {"default": "m"}
    assert check_config({"model": ""}, {})["model"] == {}  # as Hermes writes it


def test_a_name_without_a_provider_is_refused_with_the_remedy() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"Write 'model: \{provider: ollama, default: llama3\.2\}'"):
        check_config({"model": "llama3.2"}, {})


@pytest.mark.parametrize("name", ["HERMES_MODEL", "HERMES_API_KEY"])
def test_a_model_without_a_provider_does_not_become_the_built_in_one(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"HERMES_PROVIDER is required when {name} is set"):
        default_provider(Env({name: "x"}, {}))
    assert default_provider(Env({name: "x", "HERMES_BASE_URL": "http://x/v1"}, {})) == "custom"
    assert default_provider(Env({}, {})) == "builtin"


@pytest.mark.parametrize(
    ("yaml", "named"),
    [
        ("model: llama3.2\n", "model is a name without a provider"),
        ("model: {default: llama3.2}\n", "HERMES_PROVIDER is required when HERMES_MODEL is set"),
        ("model: {provider: openrouter, default: m, api_key: '${KEY}'}\n", "HERMES_API_KEY has a reference"),
        ("fallback_model: llama3.2\n", "fallback_models"),
        ("profile: {a: {}}\n", "profiles"),
        ("model: {provider: ollama}\n\nmodel: {}\n", "model is set twice, in lines 1 and 3"),
    ],
)
def test_a_mistake_stops_the_start(tmp_path: Path, yaml: str, named: str) -> None:
    (tmp_path / "config.yaml").write_text(yaml)
    server = Server(tmp_path, DJANGO_SETTINGS_MODULE="hermes_site.settings")
    done = server.managed("check")
    assert done.returncode != 0
    assert named in done.stderr.decode().splitlines()[-1]


@pytest.mark.parametrize(
    ("yaml", "lines"),
    [
        ("model:\n  default: a\n  provider: ollama\n  'default': b\n", "default is set twice, in lines 2 and 4"),
        ("fallback_models:\n- {model: a, model: b}\n", "model is set twice, in lines 2 and 2"),
    ],
)
def test_a_key_that_is_set_twice_is_refused_at_any_depth(tmp_path: Path, yaml: str, lines: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(yaml)
    with pytest.raises(ImproperlyConfigured, match=lines):
        read_config(path)


def test_a_merged_mapping_may_be_overridden(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, x: 3}\n")
    assert read_config(path) == {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 3}}


def test_a_model_s_name_is_enough_with_a_provider_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("model: llama3.2\n")
    assert check_settings(tmp_path, HERMES_PROVIDER="ollama").returncode == 0


# -- what a start says ------------------------------------------------------------------
@pytest.mark.any_database
def test_the_banner_names_the_model_its_fallbacks_and_profiles(database: Any, tmp_path: Path) -> None:
    server: Server = database.server(tmp_path / "home", Server, HERMES_PROVIDER="ollama", HERMES_API_KEY="sk-hidden-1")
    (server.home / "config.yaml").write_text(
        "model: {default: llama3.2, base_url: 'http://me:secret-2@127.0.0.1:1/v1'}\n"
        "fallback_models: [{provider: vllm, model: qwen}]\n"
        "profiles: {coder: {}, writer: {}}\n"
        "terminal: {backend: local}\n"
        "browser: {enabled: true}\n"
    )
    try:
        server.start()
        log = eventually(lambda: server.log if "profiles" in server.log else "")
    finally:
        server.kill()
    assert "  model        llama3.2 (ollama: Ollama) at http://127.0.0.1:1/v1\n" in log
    assert "  fallback     qwen (vllm: vLLM) at http://127.0.0.1:8000/v1\n" in log
    assert "  profiles     2: coder, writer\n" in log
    assert log.count("config.yaml: this server ignores terminal, browser.") == 1
    assert "hidden" not in log
    assert "secret-2" not in log


@pytest.mark.any_database
def test_the_banner_says_how_to_replace_the_built_in_model(make_server: Callable[..., Server]) -> None:
    server = make_server()
    log = eventually(lambda: server.log if "Try it" in server.log else "")
    assert "the built-in demonstration model. To use a real one" in log
    assert "HERMES_PROVIDER=ollama" in log
