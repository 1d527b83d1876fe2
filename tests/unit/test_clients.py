"""The table of clients: who is known by which headers, and what each reads."""

from collections.abc import Mapping

import openai
import pytest

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.clients import identify, read_reasoning_form

AI_SDK = "my-app/1.0 ai/6.0.326 ai-sdk/openai/3.0.139 ai-sdk/provider-utils/4.0.49 runtime/node.js/22"
AI_SDK_7 = "ai/7.0.170 ai-sdk-provider-utils/5.0.79 node.js/24"
AI_SDK_7_STREAM = "ai-sdk-openai/4.0.115 ai-sdk-provider-utils/5.0.79 node.js/24"
SDK_HEADERS = {"User-Agent": "OpenAI/JS 6.49.0", "X-Stainless-Lang": "js"}


class Headers:
    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}

    def __call__(self, name: str) -> str | None:
        return self._given.get(name.lower())


def openai_python(client: type[openai.OpenAI] | type[openai.AsyncOpenAI]) -> dict[str, str]:
    headers = client(api_key="x", base_url="http://localhost").default_headers
    return {name: value for name, value in headers.items() if isinstance(value, str)}


@pytest.mark.parametrize(
    ("headers", "name", "reasoning", "tool_items"),
    [
        (openai_python(openai.OpenAI), "OpenAI SDK", "raw", "mcp_call"),
        (openai_python(openai.AsyncOpenAI), "OpenAI SDK", "raw", "mcp_call"),
        (SDK_HEADERS, "OpenAI SDK", "raw", "mcp_call"),
        ({"User-Agent": "OpenAI/2.2.0 (.NET 9.0.1; Linux)"}, "OpenAI SDK", "raw", "mcp_call"),
        ({"User-Agent": AI_SDK}, "Vercel AI SDK", "summary", "mcp_call"),
        ({"User-Agent": AI_SDK_7}, "Vercel AI SDK", "summary", "mcp_call"),
        ({"User-Agent": AI_SDK_7_STREAM}, "Vercel AI SDK", "summary", "mcp_call"),
        (SDK_HEADERS | {"User-Agent": "Agents/Python 0.24.0"}, "OpenAI Agents SDK for Python", "raw", "mcp_call"),
        (
            SDK_HEADERS | {"User-Agent": "Agents/JavaScript 0.3.1"},
            "OpenAI Agents SDK for JavaScript",
            "raw",
            "mcp_call",
        ),
        (SDK_HEADERS | {"User-Agent": "pydantic-ai/2.66.0"}, "Pydantic AI", "raw", "mcp_call"),
        ({"User-Agent": "litellm/1.106.2"}, "LiteLLM", "raw", "mcp_call"),
        ({"User-Agent": "codex_cli_rs/0.166.0 (Debian 12; x86_64) xterm"}, "Codex", "raw", "mcp_call"),
        ({"User-Agent": "codex_exec/0.166.0 (Debian 12; x86_64)"}, "Codex", "raw", "mcp_call"),
        ({"User-Agent": "node", "x-promptfoo-version": "0.118.0"}, "promptfoo", "raw", "mcp_call"),
        ({"User-Agent": "Python/3.11 aiohttp/3.13.2"}, "plain HTTP", "raw", "function_call"),  # Open WebUI
        ({"User-Agent": "curl/8.5.0"}, "plain HTTP", "raw", "function_call"),
        ({}, "plain HTTP", "raw", "function_call"),
    ],
)
def test_a_client_is_known_by_its_headers(headers: dict[str, str], name: str, reasoning: str, tool_items: str) -> None:
    client = identify(Headers(headers))
    assert (client.name, client.reasoning, client.tool_items) == (name, reasoning, tool_items)


def test_the_header_is_stronger_than_the_client() -> None:
    assert read_reasoning_form(Headers({"User-Agent": AI_SDK})) == "summary"
    assert read_reasoning_form(Headers({"User-Agent": AI_SDK, "X-Hermes-Reasoning": "raw"})) == "raw"
    assert read_reasoning_form(Headers(SDK_HEADERS | {"X-Hermes-Reasoning": "summary"})) == "summary"
    with pytest.raises(InvalidRequest) as refused:
        read_reasoning_form(Headers({"X-Hermes-Reasoning": "loud"}))
    assert refused.value.param == "X-Hermes-Reasoning"
