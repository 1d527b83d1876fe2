"""REDIS_URL, HERMES_DISPATCH and HERMES_SECRET_KEY: strict, and never quoted."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.environment import Env
from gateway_app.config.redis import channel_layers, check_redis_url, read_dispatch
from gateway_app.config.secrets import shared_secret

REDIS = "redis://:secret@redis.example:6379/1"


@pytest.mark.parametrize(
    "url",
    [
        "",
        REDIS,
        "rediss://redis.example",
        "redis://[::1]:6379",
        "unix:///run/redis.sock",
        "unix:///run/redis.sock?db=1",
    ],
)
def test_these_addresses_are_accepted(url: str) -> None:
    assert check_redis_url(url) == url


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis.example:6379", "must begin with"),
        ("http://:secret@redis.example", "must begin with"),
        ("redis://:secret@", "the host is missing"),
        ("redis://:secret@redis.example:port", "its port"),
        ("redis://:secret@redis.example:99999", "its port"),
        ("redis://:secret@redis.example/name", "must be a number"),
        ("unix://", "the path of the socket is missing"),
    ],
)
def test_others_stop_the_start_without_their_password(url: str, reason: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"REDIS_URL cannot be understood: .*{reason}") as raised:
        check_redis_url(url)
    assert "secret" not in str(raised.value)


def test_with_redis_turns_run_in_workers_by_default() -> None:
    assert read_dispatch(Env({}, {}), REDIS) == "workers"
    assert read_dispatch(Env({}, {}), "") == "inprocess"
    assert read_dispatch(Env({"HERMES_DISPATCH": "inprocess"}, {}), REDIS) == "inprocess"
    assert read_dispatch(Env({"HERMES_DISPATCH": "none"}, {}), "") == "none"


def test_workers_without_redis_stop_the_start() -> None:
    with pytest.raises(ImproperlyConfigured, match="HERMES_DISPATCH=workers needs REDIS_URL"):
        read_dispatch(Env({"HERMES_DISPATCH": "workers"}, {}), "")


def test_installations_with_other_secrets_do_not_mix_on_one_redis() -> None:
    prefixes = set()
    for secret in ("one", "another"):
        layers = channel_layers(REDIS, secret)
        prefixes.add((layers["default"]["CONFIG"]["prefix"], layers["queue"]["CONFIG"]["prefix"]))
    assert len(prefixes) == 2


def test_a_short_shared_secret_stops_the_start() -> None:
    with pytest.raises(ImproperlyConfigured, match="HERMES_SECRET_KEY must have at least 32 characters"):
        shared_secret(Env({"HERMES_SECRET_KEY": "short"}, {}))
