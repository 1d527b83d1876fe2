"""The core prompt is short, and has a part for each kind of tool that is offered."""

from datetime import date, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway_app.agent.core_prompt import TOOLS, WORKSPACE, core_prompt
from gateway_app.config.profiles import read_profiles
from gateway_app.tools import builtin_tools
from responses_app.agent_profiles import NO_CORE_PROMPT
from responses_app.protocol.token_estimate import estimate_tokens

MAX_TOKENS = 400
DAY = date(2026, 11, 18)
ALL = (*builtin_tools("unsandboxed"), "remote.search")
MODELS = ({"provider": "builtin", "model": "", "base_url": "", "api_key": "", "api_mode": "", "options": {}},)


def test_it_is_short_on_every_day() -> None:
    for days in range(7):
        prompt = core_prompt(DAY + timedelta(days), ALL)
        assert estimate_tokens([], prompt, []) < MAX_TOKENS


def test_each_tool_of_the_server_has_its_rule() -> None:
    prompt = core_prompt(DAY, ALL)
    for name in builtin_tools("unsandboxed"):
        assert name in prompt


@pytest.mark.parametrize(
    ("tools", "present", "absent"),
    [
        ([], [], [TOOLS, WORKSPACE, "terminal", "calculate"]),
        (["calculate"], [TOOLS, "calculate"], [WORKSPACE, "terminal", "read_file"]),
        (["terminal"], [TOOLS, WORKSPACE, "terminal"], ["calculate", "read_file"]),
        (["remote.search"], [TOOLS], [WORKSPACE, "terminal", "calculate"]),
    ],
)
def test_it_names_no_tool_that_is_not_offered(tools: list[str], present: list[str], absent: list[str]) -> None:
    prompt = core_prompt(DAY, tuple(tools))
    assert all(part in prompt for part in present)
    assert not any(part in prompt for part in absent)


@pytest.mark.parametrize("given", ["none", False])
def test_a_profile_of_config_yaml_can_do_without(given: object) -> None:
    profiles = read_profiles({"p": {"core_prompt": given}}, MODELS, ("builtin",))
    assert profiles["p"].core_prompt == NO_CORE_PROMPT


def test_a_wrong_core_prompt_is_named() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"profiles\.p\.core_prompt must be text"):
        read_profiles({"p": {"core_prompt": 7}}, MODELS, ("builtin",))
