"""The checks that doctor prints: their form, their remedies, and where they run."""

import re
from pathlib import Path
from typing import Any

import pytest
from channels.layers import BaseChannelLayer
from django.conf import settings
from django.core import checks
from django.test import override_settings

from gateway_app.config.models import Model
from gateway_app.operations.doctor.remote import check_layer, check_upstreams
from tests.support.answering_model import AnsweringModel
from tests.support.server import ROOT, Server

pytestmark = pytest.mark.any_database
SUBJECTS = "settings|home|files|terminal|database|work|workspace|cluster|platforms"
SOURCES = sorted((ROOT / "gateway_app/operations/doctor").glob("*.py"))


class SilentLayer(BaseChannelLayer):
    """A channel layer whose server does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.channels: dict[str, object] = {}

    async def new_channel(self, prefix: str = "specific.") -> str:
        raise ConnectionError("connection refused")


def test_the_remedy_for_a_silent_channel_layer_names_what_can_be_changed() -> None:
    layer = {"BACKEND": f"{__name__}.SilentLayer"}
    with override_settings(CHANNEL_LAYERS={**settings.CHANNEL_LAYERS, "default": layer}):
        [found] = check_layer(1.0)
    assert found.is_serious()
    assert found.msg.endswith("SilentLayer does not answer: connection refused")
    assert "Check REDIS_URL" in str(found.hint)


AZURE: Model = {
    "provider": "azure",
    "model": "m-1",
    "base_url": "",
    "api_key": "az-secret",
    "api_mode": "chat_completions",
    "options": {"query": {"api-version": "preview"}, "extra_headers": {"X-Team": "blue"}},
}


def test_a_model_s_server_is_asked_as_in_real_requests() -> None:
    with AnsweringModel() as model, override_settings(HERMES_MODELS=(AZURE | {"base_url": model.url},)):
        [found] = check_upstreams(5.0)
    assert re.fullmatch(rf"{model.url} \(Azure OpenAI\) answers in \d+ ms and knows m-1", found.msg)
    assert model.paths == ["/v1/models?api-version=preview"]
    [headers] = model.headers
    assert (headers["api-key"], headers["X-Team"]) == ("az-secret", "blue")
    assert headers["Authorization"] == "Bearer az-secret"


def test_a_model_is_known_by_the_name_that_its_server_takes() -> None:
    for name in ("m-1", "m-1:latest", "models/m-1"):
        with AnsweringModel(name=name) as model:
            local = AZURE | {"provider": "ollama", "base_url": model.url, "options": {}}
            with override_settings(HERMES_MODELS=(local,)):
                [found] = check_upstreams(5.0)
        assert found.msg.endswith("knows m-1")


def test_what_an_address_hides_is_not_printed() -> None:
    hidden = AZURE | {"base_url": "http://me:pass-1@127.0.0.1:1/v1", "options": {}}
    with override_settings(HERMES_MODELS=(hidden,)):
        [found] = check_upstreams(1.0)
    assert found.msg.startswith("http://127.0.0.1:1/v1 cannot be reached")
    assert "pass-1" not in found.msg


def test_keys_that_are_ignored_are_a_finding() -> None:
    with override_settings(HERMES_IGNORED_KEYS=("terminal", "model.streaming")):
        found = checks.run_checks(tags=["machine"], include_deployment_checks=True)
    [ignored] = [message for message in found if message.id == "gateway_app.W023"]
    assert ignored.msg == "config.yaml: this server ignores terminal, model.streaming"


def test_a_remedy_names_only_variables_that_exist() -> None:
    hints = " ".join(line for source in SOURCES for line in source.read_text().splitlines() if "hint=" in line)
    named = set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", hints)) - {"CHANNEL_LAYERS", "NO_SANDBOX_REMEDY"}
    documented = set(re.findall(r"^\| `([A-Z_]+)`", (ROOT / "docs/configuration.md").read_text(), re.MULTILINE))
    assert len(named) > 5
    assert named <= documented


def machine_checks(**changed: Any) -> list[checks.CheckMessage]:
    with override_settings(**changed):
        return checks.run_checks(tags=["machine"], include_deployment_checks=True)


def test_the_checks_of_the_machine_are_registered_for_deployment_alone() -> None:
    """A start is as strict as its settings: an unsafe machine is no reason to refuse it."""
    [off] = [found for found in machine_checks(HERMES_AUTH="off") if found.id == "gateway_app.W001"]
    assert off.hint == "Remove HERMES_AUTH."
    with override_settings(HERMES_AUTH="off"):
        assert checks.run_checks(tags=["machine"]) == []


def test_what_works_is_silenced_for_the_check_command(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    found = machine_checks(HERMES_HOME=tmp_path, HERMES_TERMINAL="off")
    assert {str(message.obj) for message in found} == {"home", "files", "terminal"}
    works = [message for message in found if message.level == checks.DEBUG]
    assert {str(message.obj) for message in works} == {"home", "files", "terminal"}
    assert all(message.is_silenced() for message in works)


def test_every_check_has_an_id_of_its_own() -> None:
    ids = [name for source in SOURCES for name in re.findall(r'id="(gateway_app\.[EW]\d{3})"', source.read_text())]
    assert len(ids) > 15
    assert len({name[-3:] for name in ids}) == len(ids)


def test_the_doctor_prints_problems_of_django_and_ours_in_one_form(server: Server) -> None:
    server.home.chmod(0o750)
    out = server.managed("doctor", "--offline").stdout.decode()
    server.home.chmod(0o700)
    assert f"note home      other users can read {server.home} -> chmod 700 {server.home}\n" in out
    assert re.search(r"^ok   settings  read, for ", out, re.MULTILINE)
    for line in out.splitlines():
        assert re.match(rf"(ok   |note |FAIL )({SUBJECTS}) +\S", line), line
