"""What the configuration gives to the bridge, and what it keeps from it."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.environment import Env
from gateway_app.config.whatsapp import WhatsAppConfig, read_whatsapp
from gateway_app.platforms.whatsapp.bridge_process import child_environment


@pytest.mark.parametrize("prefix", ["x" * 1001, "x" * 5000, 7])
def test_a_prefix_that_leaves_no_room_for_the_text_is_refused(prefix: object) -> None:
    with pytest.raises(ImproperlyConfigured, match="must be text of at most 1000 characters"):
        read_whatsapp(Env({}, {"whatsapp": {"reply_prefix": prefix}}))


def test_secrets_of_the_server_do_not_reach_the_bridge() -> None:
    inherited = {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy",
        "OPENAI_API_KEY": "sk-1",
        "GITHUB_TOKEN": "ghp",
        "PGPASSWORD": "p",
        "HERMES_API_KEY": "k",
        "WHATSAPP_APP_SECRET": "s",
    }
    given = child_environment(WhatsAppConfig(), Path("/home/bridge"), "shared", inherited)
    assert given == {
        "PATH": "/bin",
        "HTTPS_PROXY": "http://proxy",
        "WHATSAPP_BRIDGE_SECRET": "shared",
        "WHATSAPP_BRIDGE_FOLDER": "/home/bridge",
        "WHATSAPP_PREFIX_IN": "all",
    }
