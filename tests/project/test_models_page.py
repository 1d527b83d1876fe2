"""The lines of docs/models.md start as they are written."""

import re

import pytest
import yaml

from gateway_app.config.config_file import check_config, default_provider
from gateway_app.config.environment import Env
from gateway_app.config.known_keys import ignored_keys
from gateway_app.config.model_options import read_options
from gateway_app.config.models import API_MODES, read_models
from gateway_app.config.presets.registry import PRESETS
from tests.support.server import ROOT

PAGE = (ROOT / "docs/models.md").read_text()
ENVIRONMENTS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
CONFIGS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def provider_of(environ: dict[str, str], given: object) -> str:
    """What the settings do with an environment and a config.yaml."""
    assert isinstance(given, dict)
    config = check_config(given, environ)
    assert ignored_keys(config) == ()
    env = Env(environ, config)
    provider = env.text("HERMES_PROVIDER", default_provider(env), config_path="model.provider")
    first = {
        "provider": provider,
        "model": env.text("HERMES_MODEL", config_path="model.default"),
        "base_url": env.text("HERMES_BASE_URL", config_path="model.base_url"),
        "api_key": env.secret("HERMES_API_KEY", config_path="model.api_key").replace("…", "0"),
        "api_mode": env.choice("HERMES_API_MODE", API_MODES[0], API_MODES, config_path="model.api_mode"),
        "options": read_options(config["model"], "config.yaml: model"),
    }
    [model] = read_models(first, None, ("builtin", *PRESETS))
    return str(model["provider"])


def test_the_lines_of_every_preset_are_accepted() -> None:
    found = set()
    for block in ENVIRONMENTS:
        lines = [line.partition(" ")[0] for line in block.splitlines()]
        found.add(provider_of(dict(line.split("=", 1) for line in lines), {}))
    assert found == set(PRESETS)


@pytest.mark.parametrize("block", CONFIGS)
def test_the_lines_of_config_yaml_are_accepted(block: str) -> None:
    assert provider_of({}, yaml.safe_load(block)) in PRESETS
