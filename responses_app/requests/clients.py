"""Which client sends a request, and the forms of output that it reads.

A client is known by its headers. The forms are fixed at admission: a later reader of the same
response gets the same events.
"""

from collections.abc import Callable
from dataclasses import dataclass

from responses_app.agent_profiles import FUNCTION_CALL, MCP_CALL
from responses_app.protocol.reasoning_items import FORMS, RAW, SUMMARY
from responses_app.requests.fields import choice

REASONING_HEADER = "X-Hermes-Reasoning"
reasoning_form = choice(*FORMS).described("How the model's raw reasoning appears in the output.")

Header = Callable[[str], str | None]


@dataclass(frozen=True)
class Client:
    name: str
    agent: str = ""  # a part of its User-Agent, in lower case
    header: str = ""  # one that only this client sends
    reasoning: str = RAW
    # Of server-run tools: a client that runs tools itself takes a function_call for its own.
    tool_items: str = MCP_CALL


# The first match counts: frameworks keep the headers of the SDK that they are built on.
CLIENTS = (
    # It reads only summaries. Applications and frameworks put names of their own before this one.
    Client("Vercel AI SDK", agent="ai-sdk/", reasoning=SUMMARY),  # up to version 6
    Client("Vercel AI SDK", agent="ai-sdk-provider-utils/", reasoning=SUMMARY),
    Client("OpenAI Agents SDK for Python", agent="agents/python"),
    Client("OpenAI Agents SDK for JavaScript", agent="agents/javascript"),
    Client("Pydantic AI", agent="pydantic-ai/"),
    Client("LiteLLM", agent="litellm/"),
    Client("Codex", agent="codex"),  # codex_cli_rs, codex_exec, codex_vscode
    Client("promptfoo", header="x-promptfoo-version"),
    # The SDKs of all languages, and with them LangChain, LibreChat, Haystack, CrewAI, LlamaIndex,
    # Instructor and LobeChat, which leave its headers as they are.
    Client("OpenAI SDK", header="x-stainless-lang"),
    Client("OpenAI SDK", agent="openai/"),  # in .NET, and behind proxies that drop other headers
)
# curl, Open WebUI (aiohttp), Hermes' own frontends: these show tool calls and run none of them.
PLAIN_HTTP = Client("plain HTTP", tool_items=FUNCTION_CALL)


def identify(header: Header) -> Client:
    user_agent = (header("User-Agent") or "").lower()
    for client in CLIENTS:
        if client.agent and client.agent in user_agent:
            return client
        if client.header and header(client.header) is not None:
            return client
    return PLAIN_HTTP


def read_reasoning_form(header: Header) -> str:
    """From its own header, or the form that the client reads."""
    given = header(REASONING_HEADER)
    if given is not None:
        return reasoning_form(given, REASONING_HEADER)
    return identify(header).reasoning
