"""``X-Hermes-Ignored`` names the items that the model is not sent, and no other."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.migrated_database import Database
from tests.support.model_stub import ModelStub
from tests.support.server import Server

pytestmark = pytest.mark.any_database

Item = dict[str, Any]
REASONING = "reasoning"
KINDS = ("user", "assistant", REASONING, "call", "custom", "own", "elsewhere", "search")
NAMED = re.compile(r"input\[(\d+)\]")


@dataclass(frozen=True)
class Front:
    server: Server
    stub: ModelStub
    mode: str


@pytest.fixture(scope="module", params=["chat_completions", "codex_responses"])
def front(
    request: pytest.FixtureRequest, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    mode = str(request.param)
    with ModelStub() as stub:
        env = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m", "HERMES_BASE_URL": stub.url}
        home = tmp_path_factory.mktemp("ignored") / "h"
        server = database.server(home, Server, **env, HERMES_API_MODE=mode).start()
        yield Front(server, stub, mode)
        server.kill()


def made(kind: str, mark: str) -> list[Item]:
    """The items of one piece of a conversation, each with a mark to be found again."""
    call = {"call_id": f"call-{mark}", "name": "look"}
    answer = {"call_id": call["call_id"], "output": f"<{mark}-answer>"}
    mcp = {"type": "mcp_call", "name": "n", "arguments": f'{{"a": "<{mark}>"}}', "output": "r"}
    match kind:
        case "user" | "assistant":
            return [{"role": kind, "content": f"<{mark}>"}]
        case "reasoning":
            return [{"type": REASONING, "summary": [], "encrypted_content": f"<{mark}>"}]
        case "call":
            asked = {"type": "function_call", **call, "arguments": f'{{"a": "<{mark}>"}}'}
            return [asked, {"type": "function_call_output", **answer}]
        case "custom":
            asked = {"type": "custom_tool_call", **call, "input": f"<{mark}>"}
            return [asked, {"type": "custom_tool_call_output", **answer}]
        case "own" | "elsewhere":
            return [{**mcp, "server_label": "hermes" if kind == "own" else "elsewhere"}]
        case _:
            return [{"type": "web_search_call", "action": {"query": f"<{mark}>"}}]


@st.composite
def conversations(draw: st.DrawFn) -> list[Item]:
    """Pieces in any order; an output may stand anywhere, even before its call."""
    items: list[Item] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=7))):
        first, *answers = made(kind, f"mark{number}")
        items.append(first)
        for answer in answers:
            items.insert(draw(st.integers(0, len(items))), answer)
    return [*items, {"role": "user", "content": "<question>"}]


def mark_of(item: Item) -> str:
    found: list[str] = re.findall(r"<([\w-]+)>", json.dumps(item))
    return found[0]


REORDERED = [
    {"type": REASONING, "summary": [], "encrypted_content": "<mark0>"},
    *reversed(made("call", "mark1")),
    *made("own", "mark2"),
    *made("search", "mark3"),
]


@given(conversations())
@example(REORDERED)
@settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_header_names_what_the_model_was_not_sent(front: Front, items: list[Item]) -> None:
    with front.server.http() as client:
        answer = client.post("/v1/responses", json={"input": items, "store": False})
    assert answer.status_code == 200, answer.text
    named = {int(index) for index in NAMED.findall(answer.headers.get("x-hermes-ignored", ""))}
    sent = json.dumps(front.stub.asked[-1].body)
    unseen = {index for index, item in enumerate(items) if f"<{mark_of(item)}>" not in sent}
    assert named <= unseen, [items[index] for index in named - unseen]
    silent = [items[index].get("type") for index in unseen - named]
    # Chat Completions have no place for reasoning that led to an answer: it is never sent there.
    assert set(silent) <= ({REASONING} if front.mode == "chat_completions" else set())
