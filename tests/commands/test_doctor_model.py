"""``doctor --model`` makes one real call of each kind: it says what works, what to do, and ends in time."""

import re
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from gateway_app.config.models import Model
from responses_app.models import Profile
from tests.support.answering_model import AnsweringModel
from tests.support.ports import free_port
from tests.support.server import Server

pytestmark = pytest.mark.django_db
KINDS = ["text", "usage", "tool", "parallel", "structured", "image", "reasoning", "continue", "long"]


@pytest.fixture
def model() -> Iterator[AnsweringModel]:
    with AnsweringModel() as running:
        yield running


def configured(url: str, **fields: Any) -> Model:
    model: Model = {"provider": "custom", "model": "m-1", "base_url": url, "api_key": "", "options": {}}
    return model | {"api_mode": "chat_completions"} | fields


class Doctor:
    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def __call__(self, upstream: Model, *options: str, window: int = 0) -> tuple[dict[str, str], str]:
        """The grades by kind, and all that was printed; ``failed`` among the grades where the exit code is 1."""
        self.settings.HERMES_MODELS = (upstream,)
        self.settings.HERMES_CONTEXT_LENGTH = window
        printed, progress = StringIO(), StringIO()
        grades = {}
        try:
            call_command("doctor", "--model", *options, stdout=printed, stderr=progress)
        except CommandError as error:
            grades["failed"] = str(error)
        for grade, kind in re.findall(r"^(ok|note|FAIL) +(\w+)", printed.getvalue(), re.MULTILINE):
            assert f"... {kind}\n" in progress.getvalue()
            grades[kind] = grade
        return grades, printed.getvalue()


@pytest.fixture
def doctor(settings: Any) -> Doctor:
    return Doctor(settings)


def test_a_good_server_passes_every_trial(doctor: Doctor, model: AnsweringModel) -> None:
    grades, printed = doctor(configured(model.url), window=4000)
    assert grades == dict.fromkeys(KINDS, "ok"), printed
    assert f"Trying m-1 (custom: any compatible server) at {model.url}\n" in printed
    assert "'ready' in " in printed
    longest = max(len(str(body["messages"])) for body in model.asked)
    assert longest / 4.5 > 0.8 * 4000  # near the window
    assert all(body["stream"] for body in model.asked)
    assert "Recommended" not in printed


def test_each_trial_has_a_connection_of_its_own(doctor: Doctor, model: AnsweringModel) -> None:
    """llama-server closes a connection after two answers, and a trial on it would fail for that alone."""
    doctor(configured(model.url))
    assert {headers["connection"] for headers in model.asked_headers} == {"close"}


def test_a_server_that_refuses_tools_is_a_failure_with_a_remedy(doctor: Doctor, model: AnsweringModel) -> None:
    model.has_tools = False
    grades, printed = doctor(configured(model.url))
    assert grades["tool"] == "FAIL"
    assert "This model does not support tools" in printed
    assert "--enable-auto-tool-choice" in printed
    assert "An agent can't work with this model" in grades["failed"]
    assert grades["image"] == "ok"  # the others are tried all the same


def test_a_server_that_follows_no_schema_is_a_note(doctor: Doctor, model: AnsweringModel) -> None:
    model.has_formats = False
    grades, _ = doctor(configured(model.url))
    assert grades["structured"] == "note"
    assert "failed" not in grades


def test_a_server_that_can_not_be_reached_fails_at_once(doctor: Doctor) -> None:
    began = time.monotonic()
    grades, printed = doctor(configured(f"http://127.0.0.1:{free_port()}/v1"), "--limit", "20")
    assert time.monotonic() - began < 20
    assert list(grades) == ["failed", "text"]
    assert "cannot be reached" in printed
    assert "Check HERMES_BASE_URL" in printed


def test_a_silent_server_costs_no_more_than_the_limit(doctor: Doctor, model: AnsweringModel) -> None:
    model.is_silent = True
    grades, printed = doctor(configured(model.url), "--limit", "0.4")
    assert grades["text"] == "FAIL"
    assert "no answer within" in printed


def test_streams_without_token_counts_are_a_note(doctor: Doctor, model: AnsweringModel) -> None:
    model.has_usage = False
    grades, printed = doctor(configured(model.url))
    assert grades["usage"] == "note"
    assert "the stream has no token counts" in printed


def test_an_answer_that_starts_anew_is_a_note(doctor: Doctor, model: AnsweringModel) -> None:
    model.continues = False
    grades, printed = doctor(configured(model.url))
    assert grades["continue"] == "note"
    assert "it starts anew: 'one, two, three" in printed


def test_what_the_server_reports_of_itself_is_recommended(doctor: Doctor, model: AnsweringModel) -> None:
    model.listed = {"owned_by": "vllm", "max_model_len": 2048}
    grades, printed = doctor(configured(model.url))
    assert grades["long"] == "ok"
    assert "\n  model:\n    provider: vllm\n    context_length: 2048\n" in printed
    _, printed = doctor(configured(model.url, provider="vllm"), window=8192)
    assert "\n  model:\n    context_length: 2048\n" in printed


def test_an_option_that_the_server_refuses_is_named(doctor: Doctor, model: AnsweringModel) -> None:
    model.refused_field = "top_k"
    upstream = configured(model.url, options={"temperature": 1.0, "extra_body": {"top_k": 20}})
    grades, printed = doctor(upstream)
    assert grades["text"] == "FAIL"  # an option of the operator is never left out
    assert "-> Remove the option top_k: the server refuses it." in printed


def test_what_is_recommended_for_a_profile_is_a_part_of_it(doctor: Doctor, model: AnsweringModel) -> None:
    model.listed = {"owned_by": "vllm"}
    Profile.objects.create(name="coder", upstream_model="m-1")
    _, printed = doctor(configured(model.url), "coder")
    assert printed.endswith("\n  profiles:\n    coder:\n      provider: vllm\n")


def test_the_model_of_a_profile_is_tried_with_its_options(doctor: Doctor, model: AnsweringModel) -> None:
    options = {"temperature": 0.25, "extra_headers": {"X-Team": "blue"}, "query": {"api-version": "1"}}
    Profile.objects.create(name="coder", upstream_model="m-1", model_options=options)
    grades, _ = doctor(configured(model.url), "coder")
    assert grades["text"] == "ok"
    assert all(body["temperature"] == 0.25 for body in model.asked)
    assert model.paths[0] == "/v1/models?api-version=1"
    assert model.headers[0]["X-Team"] == "blue"


def test_an_unknown_profile_and_the_built_in_model_are_refused(doctor: Doctor, settings: Any) -> None:
    grades, _ = doctor(configured("http://127.0.0.1:1/v1"), "unknown")
    assert grades == {"failed": "There is no profile 'unknown'. The profiles are: hermes-agent."}
    Profile.objects.create(name="broken", provider="azure", upstream_model="m")
    grades, _ = doctor(configured("http://127.0.0.1:1/v1"), "broken")
    assert grades == {"failed": "Profile broken.base_url is required when Profile broken.provider is azure."}
    grades, _ = doctor(settings.HERMES_MODELS[0] | {"provider": "builtin"})
    assert "there is nothing to try" in grades["failed"]


def test_a_database_without_tables_is_a_finding_and_not_a_traceback(tmp_path: Path) -> None:
    upstream = {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": "http://127.0.0.1:1/v1", "HERMES_MODEL": "m"}
    done = Server(tmp_path, **upstream).managed("doctor", "--model")
    assert done.returncode == 1
    assert re.fullmatch(r"CommandError: database: \d+ migrations are missing -> Run .*\n", done.stderr.decode())
