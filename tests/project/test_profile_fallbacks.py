"""A profile may have no fallback models: its prompts then never leave its own upstream."""

from typing import Any

import pytest

from gateway_app.config.models import Model
from gateway_app.config.profiles import models_of, read_profiles
from responses_app.models import Profile
from responses_app.services.profiles import profile_of_row

PROVIDERS = ("custom",)
SERVER: tuple[Model, ...] = (
    {
        "provider": "custom",
        "model": "first",
        "base_url": "http://first.example/v1",
        "api_key": "",
        "api_mode": "chat_completions",
        "options": {},
    },
    {
        "provider": "custom",
        "model": "cloud",
        "base_url": "http://cloud.example/v1",
        "api_key": "",
        "api_mode": "chat_completions",
        "options": {},
    },
)


def names(models: tuple[Model, ...]) -> list[str]:
    return [model["model"] for model in models]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, ["own", "cloud"]),
        ({"fallback_models": None}, ["own", "cloud"]),
        ({"fallback_models": []}, ["own"]),
        ({"fallback_models": "none"}, ["own"]),
        ({"fallback_models": ["none"]}, ["own", "none"]),
    ],
)
def test_only_an_absent_list_in_the_config_means_that_of_the_server(entry: Any, expected: list[str]) -> None:
    profile = read_profiles({"private": {"model": "own"} | entry}, SERVER, PROVIDERS)["private"]
    assert names(models_of(profile, SERVER, PROVIDERS)) == expected


@pytest.mark.parametrize(("value", "expected"), [([], ["own", "cloud"]), ("none", ["own"]), (["m2"], ["own", "m2"])])
def test_an_empty_list_of_a_row_is_not_set_and_none_turns_fallbacks_off(value: Any, expected: list[str]) -> None:
    profile = profile_of_row(Profile(name="private", upstream_model="own", fallback_models=value))
    assert names(models_of(profile, SERVER, PROVIDERS)) == expected
