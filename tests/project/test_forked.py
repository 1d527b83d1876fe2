"""Processes that the suite forks have the libraries, and nothing that depends on an environment."""

import json
import os
from pathlib import Path

from tests.support.forked import Forked
from tests.support.server import COMMAND_SECS

REPORT = """
import json
import os
import sys
from django.conf import settings

names = ["gateway_app.agent.loop", "openai"]
names += ["hermes_site.settings", "responses_app.models", "twisted.internet.reactor"]
print(json.dumps({
    "loaded": [name for name in names if name in sys.modules],
    "has_settings": settings.configured,
    "environment": dict(os.environ),
}))
"""


def test_a_forked_process_begins_without_settings_and_without_a_reactor(tmp_path: Path) -> None:
    script = tmp_path / "report.py"
    script.write_text(REPORT)
    reply = tmp_path / "stdout"
    process = Forked([str(script)], {"ONLY": "this"}, Path(os.devnull), reply, tmp_path / "stderr")
    assert process.wait(COMMAND_SECS) == 0
    found = json.loads(reply.read_text())
    assert found["loaded"] == ["gateway_app.agent.loop", "openai"]
    assert not found["has_settings"]
    assert found["environment"] == {"ONLY": "this"}
