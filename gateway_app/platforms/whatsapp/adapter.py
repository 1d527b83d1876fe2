"""WhatsApp: one adapter for each of its two transports."""

from django.conf import settings

from gateway_app.config.platforms import PlatformConfig
from gateway_app.config.whatsapp import CLOUD, WhatsAppConfig
from gateway_app.platforms.adapter import Adapter
from gateway_app.platforms.whatsapp.bridge import BridgeAdapter
from gateway_app.platforms.whatsapp.cloud import CloudAdapter


def make_adapter(config: PlatformConfig) -> Adapter:
    whatsapp: WhatsAppConfig = settings.HERMES_WHATSAPP
    if whatsapp.transport == CLOUD:
        return CloudAdapter(config, whatsapp)
    return BridgeAdapter(config, whatsapp)
