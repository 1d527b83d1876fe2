"""Every dialect in every case, through both APIs: all of it with ``make test-dialects``, a sample in the suite."""

import pytest

from tests.dialects.cases import CASES, Bench
from tests.dialects.conftest import Front
from tests.dialects.conversations import CONVERSATIONS
from tests.dialects.registry import DIALECTS

pytestmark = pytest.mark.any_database

# Each dialect and each case once or twice; a restart takes seconds, so it is there once.
SAMPLE = (
    ("ollama", "tools", "chat"),
    ("llamacpp", "cut", "responses"),
    ("llama-cpp-python", "parallel-tools", "chat"),
    ("vllm", "restart", "responses"),
    ("lmstudio", "overflow", "chat"),
    ("openrouter", "reasoning", "chat"),
    ("deepseek", "structured-output", "responses"),
    ("gemini", "text", "responses"),
    ("mistral", "parallel-tools", "responses"),
    ("azure", "text", "chat"),
    ("openai", "cut", "chat"),
    ("openai-responses", "tools", "responses"),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cells = list(SAMPLE)
    if metafunc.config.getoption("--all-dialects", default=False):
        cells = [(dialect, case, api) for dialect in DIALECTS for case in CASES for api in CONVERSATIONS]
    metafunc.parametrize(("dialect", "case", "api"), cells, ids="-".join)


def test_the_matrix(front: Front, dialect: str, case: str, api: str) -> None:
    upstream = front.upstreams[dialect]
    upstream.forget()
    conversation = CONVERSATIONS[api](front.server, dialect)
    CASES[case](Bench(front.server, upstream, conversation))
