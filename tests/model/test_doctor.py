"""`manage.py doctor --model` tries the real model with one call of each kind, and reports what works."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.support.real_models import Options, RealModel, running_model
from tests.support.server import ROOT, Server

DOCTOR_SECS = 500
SMALL = Options(context=2048, has_tool_template=True)  # the longest prompt nearly fills it
KINDS = {"text", "usage", "tool", "parallel", "structured", "image", "reasoning", "continue", "long"}


@pytest.fixture(scope="module")
def model(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealModel]:
    with running_model(provider, tmp_path_factory.mktemp("doctor"), SMALL) as running:
        yield running


def test_the_doctor_tries_each_kind_of_call(serve: Callable[..., Server], model: RealModel) -> None:
    server = serve(model, model.port, HERMES_CONTEXT_LENGTH=str(SMALL.context))
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--model"],
        cwd=ROOT,
        env=server.env,
        capture_output=True,
        text=True,
        timeout=DOCTOR_SECS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    grades = {kind: grade for grade, kind in re.findall(r"^(ok|note|FAIL) +(\w+)", done.stdout, re.MULTILINE)}
    assert grades.keys() == KINDS
    assert "FAIL" not in grades.values(), done.stdout
    assert grades["text"] == grades["structured"] == "ok"
    counted = {"llama-cpp-python": "note", "llamacpp": "ok"}
    assert grades["usage"] == counted[model.provider]
    assert grades["image"] == "note"  # the model sees no pictures, and the server says so
