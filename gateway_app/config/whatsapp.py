"""``whatsapp`` of config.yaml: the transport, its secrets, and what begins each message."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.environment import Env
from gateway_app.config.known_keys import mapping

CLOUD, BRIDGE = "cloud", "bridge"
ALL, SELF = "all", "self"
GRAPH_URL = "https://graph.facebook.com/v23.0"
PREFIX_VARIABLE = "WHATSAPP_REPLY_PREFIX"
MAX_PREFIX_CHARS = 1000  # most of each message is for the text
DEFAULT_PREFIX = "⚕ *Hermes Agent*\n────────────\n"


@dataclass(frozen=True)
class WhatsAppConfig:
    transport: str = BRIDGE
    reply_prefix: str | None = None  # as it is written; None means the default
    prefix_in: str = ALL
    phone_number_id: str = ""
    access_token: str = ""
    app_secret: str = ""
    verify_token: str = ""
    graph_url: str = GRAPH_URL
    transport_module: str = ""  # empty means the Baileys one

    @property
    def prefix(self) -> str:
        """The text before each message, with its escapes resolved."""
        if self.reply_prefix is None:
            return DEFAULT_PREFIX
        return self.reply_prefix.replace("\\n", "\n")

    def prefix_for(self, *, is_self_chat: bool) -> str:
        if self.prefix_in == SELF and not is_self_chat:
            return ""
        return self.prefix


def read_whatsapp(env: Env) -> WhatsAppConfig:
    given = mapping(env.config.get("whatsapp"))
    config = WhatsAppConfig(
        transport=_choice(given, "transport", BRIDGE, (BRIDGE, CLOUD)),
        reply_prefix=_reply_prefix(env, given),
        prefix_in=_choice(given, "prefix_in", ALL, (ALL, SELF)),
        phone_number_id=_identifier(given, "phone_number_id"),
        access_token=env.secret("WHATSAPP_ACCESS_TOKEN", config_path="whatsapp.access_token"),
        app_secret=env.secret("WHATSAPP_APP_SECRET", config_path="whatsapp.app_secret"),
        verify_token=env.secret("WHATSAPP_VERIFY_TOKEN", config_path="whatsapp.verify_token"),
        graph_url=env.text("WHATSAPP_GRAPH_URL", GRAPH_URL, config_path="whatsapp.graph_url"),
        transport_module=env.text(
            "WHATSAPP_TRANSPORT_MODULE", config_path="whatsapp.transport_module"
        ),
    )
    if given.get("enabled") is True and config.transport == CLOUD:
        _check_cloud(config)
    return config


def _check_cloud(config: WhatsAppConfig) -> None:
    for name in ("phone_number_id", "access_token", "app_secret", "verify_token"):
        if not getattr(config, name):
            raise ImproperlyConfigured(
                f"config.yaml: whatsapp.{name} is required for the transport cloud; "
                "docs/platforms.md has the steps."
            )
    if not config.graph_url.startswith(("https://", "http://")):
        raise ImproperlyConfigured("WHATSAPP_GRAPH_URL must be an http or https address.")


def _reply_prefix(env: Env, given: Mapping[str, Any]) -> str | None:
    """An empty text is one of three cases: absent, empty, set."""
    value = env.environ.get(PREFIX_VARIABLE, given.get("reply_prefix"))
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_PREFIX_CHARS:
        raise ImproperlyConfigured(
            "config.yaml: whatsapp.reply_prefix must be text of at most "
            f"{MAX_PREFIX_CHARS} characters."
        )
    return value


def _choice(given: Mapping[str, Any], key: str, default: str, choices: tuple[str, ...]) -> str:
    value = given.get(key, default)
    if value not in choices:
        raise ImproperlyConfigured(
            f"config.yaml: whatsapp.{key} must be one of {', '.join(choices)}, not {value!r}."
        )
    return str(value)


def _identifier(given: Mapping[str, Any], key: str) -> str:
    """YAML reads digits without quotes as a number."""
    value = given.get(key)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ImproperlyConfigured(f"config.yaml: whatsapp.{key} must be text.")
    return str(value).strip()
