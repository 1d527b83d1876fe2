"""What a process that serves does not import before a request needs it: memory, and time at each start."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVED = (
    "import sys, hermes_site.asgi, hermes_site.urls, gateway_app.management.commands.serve,"
    " gateway_app.providers.openai.provider; print(*sys.modules)"
)
NOT_NEEDED = (
    "OpenSSL.SSL",  # Twisted's TLS
    "gateway_app.api.schema.document",
    "httpcore2",  # reads pages of the web
    "json_repair",
    "jsonschema",
    "redis",
    "responses_app.migrations.0001_initial",
)


@pytest.mark.any_database
def test_a_server_imports_libraries_that_few_requests_need_with_the_first_of_them() -> None:
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", SERVED]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    modules = set(shown.split())
    assert "openai" in modules
    assert modules.isdisjoint(NOT_NEEDED)
