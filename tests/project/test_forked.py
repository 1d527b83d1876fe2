"""Processes that the suite forks have all modules, and nothing of the environment they were forked in."""

import json
import os
from pathlib import Path
from typing import Any

from tests.support.forked import Forked
from tests.support.server import COMMAND_SECS

REPORT = """
import json
import os
import sys
from django.apps import apps
from django.conf import settings

found = {
    "loaded": "responses_app.models" in sys.modules,
    "is_configured": settings.configured,
    "is_ready": apps.ready,
    "environment": dict(os.environ),
}
os.environ.update(DJANGO_SETTINGS_MODULE="tests.settings", HERMES_HOME=os.getcwd() + sys.argv[1])
import django
django.setup()
from django.db import connections
from twisted.internet import reactor
from responses_app.services.lifecycle.claim import process_id

found["home"] = str(settings.HERMES_HOME)
found["database"] = str(connections["default"].settings_dict["NAME"])
found["process_id"] = process_id()
found["wakes_by"] = os.fstat(reactor._asyncioEventloop._ssock.fileno()).st_ino
print(json.dumps(found))
"""


def report(folder: Path, name: str) -> dict[str, Any]:
    script = folder / f"{name}.py"
    script.write_text(REPORT.replace("os.getcwd()", repr(f"{folder}/")))
    reply, errors = folder / f"{name}.out", folder / f"{name}.err"
    process = Forked([str(script), name], {"ONLY": "this"}, Path(os.devnull), reply, errors)
    assert process.wait(COMMAND_SECS) == 0, errors.read_text()
    found: dict[str, Any] = json.loads(reply.read_text())
    return found


def test_a_forked_process_has_settings_and_a_reactor_of_its_own(tmp_path: Path) -> None:
    first, second = report(tmp_path, "first"), report(tmp_path, "second")
    for found, name in ((first, "first"), (second, "second")):
        assert found["loaded"]
        assert not found["is_configured"]
        assert not found["is_ready"]
        assert found["environment"] == {"ONLY": "this"}
        assert found["home"] == f"{tmp_path}/{name}"
        assert found["database"] == f"{tmp_path}/{name}/hermes.sqlite3"
    assert first["process_id"] != second["process_id"]
    assert first["wakes_by"] != second["wakes_by"]
