"""Profiles are made in the admin as strictly as in config.yaml: the operator gets the error, not the first client."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gateway_app.config.presets.registry import PRESETS
from gateway_app.runtime.agents import agent_of
from responses_app.agent_profiles import AgentProfile
from responses_app.models import Profile

pytestmark = pytest.mark.django_db
GOOD = {
    "name": "coder",
    "toolset": "null",
    "client_tools": "replace",
    "fallback_models": "[]",
    "model_options": "{}",
    "is_enabled": "on",
}


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ada", password="x"))
    return client


def save(browser: Client, **fields: str) -> Any:
    return browser.post("/admin/responses_app/profile/add/", {**GOOD, **fields})


def test_a_good_profile_is_saved(browser: Client) -> None:
    upstream = {"provider": "custom", "upstream_model": "m", "base_url": "https://models.example/v1"}
    assert save(browser, **upstream, toolset='["terminal"]').status_code == 302
    assert Profile.objects.get().toolset == ["terminal"]


@pytest.mark.parametrize(("written", "stored"), [("", None), ("null", None), ("[]", [])])
def test_an_empty_toolset_is_all_tools_and_an_empty_list_is_none(
    browser: Client, written: str, stored: list[str] | None
) -> None:
    assert save(browser, toolset=written).status_code == 302
    assert Profile.objects.get().toolset == stored
    assert bool(agent_of("coder").tools(None)) is (stored is None)


def test_options_of_the_model_are_saved_and_go_with_its_requests(browser: Client) -> None:
    options = '{"temperature": 0.5, "extra_body": {"top_k": 20}}'
    assert save(browser, provider="ollama", upstream_model="m", model_options=options).status_code == 302
    [model, *_] = agent_of("coder").models()
    assert model["base_url"] == "http://127.0.0.1:11434/v1"
    assert model["options"] == {"temperature": 0.5, "extra_body": {"top_k": 20}}


def test_options_alone_keep_the_model_of_the_server(browser: Client, settings: Any) -> None:
    settings.HERMES_MODELS = (settings.HERMES_MODELS[0] | {"options": {"temperature": 1.0, "max_tokens": 9}},)
    assert save(browser, model_options='{"temperature": 0.5}').status_code == 302
    [model] = agent_of("coder").models()
    assert model == settings.HERMES_MODELS[0] | {"options": {"temperature": 0.5, "max_tokens": 9}}


def test_an_empty_field_means_no_options(browser: Client) -> None:
    assert save(browser, model_options="").status_code == 302
    assert Profile.objects.get().model_options == {}


def test_a_profile_without_fallbacks_is_saved(browser: Client, settings: Any) -> None:
    settings.HERMES_MODELS = settings.HERMES_MODELS * 2
    assert '"none" that no other model' in browser.get("/admin/responses_app/profile/add/").content.decode()
    assert save(browser, fallback_models='"none"').status_code == 302
    assert len(agent_of("coder").models()) == 1


def test_an_empty_field_means_the_fallbacks_of_the_server(browser: Client, settings: Any) -> None:
    settings.HERMES_MODELS = settings.HERMES_MODELS * 2
    assert save(browser, fallback_models="").status_code == 302
    assert len(agent_of("coder").models()) == 2


def test_the_form_lists_the_providers(browser: Client) -> None:
    page = browser.get("/admin/responses_app/profile/add/").content.decode()
    for name in PRESETS:
        assert name in page, name


@pytest.mark.parametrize(
    ("field", "value", "reported"),
    [
        ("model_options", "[]", "model_options must be a mapping"),
        ("model_options", '{"temprature": 1}', "model_options.temprature is unknown; write temperature"),
        ("model_options", '{"api_key": "sk-1"}', "model_options.api_key is not one of"),
        ("model_options", '{"temperature": 3}', "temperature must be a number from 0 to 2"),
        ("model_options", '{"extra_headers": {"X Y": "z"}}', "extra_headers.X Y can&#x27;t be the name of a header"),
        ("provider", "oracle", "provider must be one of"),
        ("provider", "custom", "base_url is required"),
        ("toolset", '{"terminal": true}', "toolset must be a list"),
        ("toolset", "[7]", "toolset[0] must be text"),
        ("toolset", '["calculate", "terminl"]', "toolset[1] is &#x27;terminl&#x27;, which is no tool; write terminal."),
        ("fallback_models", '"another"', "fallback_models must be a list"),
        ("fallback_models", '[{"who": "knows"}]', "who is not one of"),
    ],
)
def test_a_bad_one_is_refused_by_name(browser: Client, field: str, value: str, reported: str) -> None:
    answer = save(browser, **({"upstream_model": "m"} if value == "custom" else {}), **{field: value})
    assert answer.status_code == 200
    assert reported in answer.content.decode()
    assert not Profile.objects.exists()


def page(browser: Client, path: str) -> str:
    answer = browser.get(f"/admin/responses_app/profile/{path}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_the_page_of_a_profile_shows_its_whole_prompt(browser: Client, settings: Any) -> None:
    settings.HERMES_CORE_PROMPT = True
    row = Profile.objects.create(name="coder", instructions="Write tests first.", toolset=["calculate"])
    shown = page(browser, f"{row.pk}/change/")
    assert "You are Hermes" in shown
    assert "Use calculate" in shown
    assert "Use terminal" not in shown
    row.core_prompt = "Another core."
    row.save()
    assert "<pre>Another core.\n\nWrite tests first.</pre>" in page(browser, f"{row.pk}/change/")
    row.core_prompt = "None"
    row.save()
    assert "<pre>Write tests first.</pre>" in page(browser, f"{row.pk}/change/")


def test_the_list_shows_the_prompts_of_agents_without_a_row(browser: Client, settings: Any) -> None:
    settings.HERMES_CORE_PROMPT = True
    settings.HERMES_PROFILES = {"filed": AgentProfile("filed", "config.yaml", instructions="From the file.")}
    shown = page(browser, "")
    assert "Effective prompt of hermes-agent" in shown
    assert shown.count("You are Hermes") == 2
    assert "From the file." in shown
    settings.HERMES_CORE_PROMPT = False
    settings.HERMES_PROFILES = {}
    assert "The model gets no prompt from the server." in page(browser, "")
