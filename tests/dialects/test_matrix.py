"""Every dialect in every case, through both APIs: all of it with ``make test-dialects``, a sample in the suite."""

import pytest
from _pytest.mark import ParameterSet

from tests.dialects.cases import CASES, Bench
from tests.dialects.conversations import CONVERSATIONS
from tests.dialects.registry import DIALECTS
from tests.dialects.upstream import Front

pytestmark = pytest.mark.any_database

# Each dialect and each case once or twice; a restart takes seconds, so it is there once.
SAMPLE = (
    ("ollama", "text", "chat"),
    ("llamacpp", "cut", "responses"),
    ("llama-cpp-python", "structured-output", "chat"),
    ("vllm", "restart", "responses"),
    ("lmstudio", "overflow", "chat"),
    ("openrouter", "reasoning", "chat"),
    ("deepseek", "tools", "chat"),
    ("gemini", "tools", "responses"),
    ("mistral", "text", "responses"),
    ("mistral", "parallel-tools", "chat"),
    ("azure", "text", "chat"),
    ("openai", "cut", "chat"),
    ("openai-responses", "tools", "responses"),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cells = list(SAMPLE)
    if metafunc.config.getoption("--all-dialects", default=False):
        cells = [(dialect, case, api) for dialect in DIALECTS for case in CASES for api in CONVERSATIONS]
    metafunc.parametrize(("dialect", "case", "api"), [_param(*cell) for cell in cells])


def _param(dialect: str, case: str, api: str) -> ParameterSet:
    return pytest.param(dialect, case, api, id=f"{dialect}-{case}-{api}")


def test_the_matrix(front: Front, dialect: str, case: str, api: str) -> None:
    upstream = front.upstreams[dialect]
    upstream.forget()
    conversation = CONVERSATIONS[api](front.server, dialect)
    CASES[case](Bench(front.server, upstream, conversation))
