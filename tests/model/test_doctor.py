"""`manage.py doctor --model` tries the real model with one call of each kind, and reports what works."""

import re
import subprocess
import sys

from tests.support.real_models import RealModel
from tests.support.server import ROOT, Server

DOCTOR_SECS = 500
KINDS = ("text", "usage", "tool", "parallel", "structured", "image", "reasoning", "continue", "long")


def test_the_doctor_reports_each_kind_of_call(hermes: Server, model: RealModel) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "doctor", "--model"],
        cwd=ROOT,
        env=hermes.env,
        capture_output=True,
        text=True,
        timeout=DOCTOR_SECS,
    )
    print(done.stdout, done.stderr)
    lines = {}
    for kind in KINDS:
        found = re.search(rf"^.*\b{kind}\b.*$", done.stdout, re.MULTILINE)
        assert found is not None, (kind, done.stdout)
        lines[kind] = found[0]
    assert 0
