"""Presets: a name stands for the address, the fields and the habits of a kind of server."""

from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.models import Model, read_model
from gateway_app.config.presets.registry import PRESETS
from gateway_app.providers.openai.chat_completions.request import chat_body
from gateway_app.providers.openai.client import Upstream, UpstreamClient
from gateway_app.providers.openai.extra_fields import sent_fields
from gateway_app.providers.openai.responses.request import responses_body
from tests.support.providers import CALL

ALL = ("builtin", *PRESETS)
FIRST: Model = {
    "provider": "builtin",
    "model": "",
    "base_url": "",
    "api_key": "",
    "api_mode": "chat_completions",
    "options": {},
}


def read(**entry: Any) -> Model:
    return read_model(entry, FIRST, ALL, "config.yaml: model")


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.base_url])
def test_a_preset_needs_no_address(name: str) -> None:
    model = read(provider=name, model="m", api_key="sk-1")
    assert model["base_url"] == PRESETS[name].base_url


@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if preset.needs_key])
def test_a_hosted_preset_needs_a_key(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"api_key is required"):
        read(provider=name, model="m", base_url="https://model.example/v1")


@pytest.mark.parametrize("name", ["azure", "custom"])
def test_a_preset_without_an_address_requires_one(name: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"base_url is required"):
        read(provider=name, model="m", api_key="sk-1")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("temperature", 3),
        ("temperature", True),
        ("max_tokens", 0),
        ("extra_body", ["top_k"]),
        ("extra_body", {"messages": []}),
        ("extra_headers", {"Authorization": "Bearer x"}),
        ("extra_headers", {"X-Title": 1}),
        ("query", {"api-version": 2024}),
        ("upstream_resume", "yes"),
    ],
)
def test_a_wrong_option_is_named(option: str, value: Any) -> None:
    with pytest.raises(ImproperlyConfigured, match=rf"config\.yaml: model\.{option}"):
        read(provider="custom", model="m", base_url="http://127.0.0.1:1/v1", **{option: value})


OPTIONS = {"temperature": 0.1, "max_tokens": 300, "extra_body": {"top_k": 20}}


def test_options_go_with_every_request() -> None:
    upstream = Upstream("custom", "m", options=OPTIONS)
    body = chat_body(CALL, upstream)
    assert (body["temperature"], body["max_tokens"], body["top_k"]) == (0.1, 300, 20)
    body = responses_body(CALL, upstream)
    assert (body["temperature"], body["max_output_tokens"], body["top_k"]) == (0.1, 300, 20)


async def test_azure_gets_its_key_header_and_its_query() -> None:
    upstream = Upstream(
        "azure",
        "deployment",
        base_url="https://resource.example/openai/v1",
        api_key="az-key",
        options={"query": {"api-version": "preview"}, "extra_headers": {"X-Team": "blue"}},
    )
    client = UpstreamClient(upstream)
    assert client.headers["api-key"] == "az-key"
    assert client.headers["X-Team"] == "blue"
    assert client.sdk.default_query["api-version"] == "preview"
    await client.aclose()


def test_a_field_that_a_server_refuses_is_not_sent() -> None:
    body = chat_body(CALL, Upstream("mistral", "m"))
    assert "stream_options" not in body


def test_a_field_that_a_server_refuses_counts_as_ignored() -> None:
    fields = ("seed", "frequency_penalty")
    for is_chat_request in (True, False):
        for name, sent in (("mistral", {"frequency_penalty"}), ("gemini", {"seed"}), ("vllm", {*fields})):
            found = sent_fields(fields, PRESETS[name], "chat_completions", is_chat_request=is_chat_request)
            assert found == sent


@pytest.mark.parametrize("name", ["llamacpp", "lmstudio"])
def test_a_server_that_takes_no_named_choice_is_offered_the_named_tool_alone(name: str) -> None:
    tools = ({"type": "function", "name": "look"}, {"type": "function", "name": "listen"})
    call = replace(CALL, client_tools=tools, tool_choice={"type": "function", "name": "listen"})
    body = chat_body(call, Upstream(name, "m"))
    assert body["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in body["tools"]] == ["listen"]
    later = chat_body(call.followed_by([]), Upstream(name, "m"))
    assert later["tool_choice"] == "auto"
    assert len(later["tools"]) == 2
