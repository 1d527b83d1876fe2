"""WhatsApp by the bridge: a Node program that `manage.py runplatform whatsapp` runs."""

from gateway_app.config.platforms import PlatformConfig
from gateway_app.config.whatsapp import WhatsAppConfig
from gateway_app.platforms.adapter import Adapter, Target


class BridgeAdapter(Adapter):
    is_polled = True

    def __init__(self, config: PlatformConfig, whatsapp: WhatsAppConfig) -> None:
        super().__init__(config)
        self._whatsapp = whatsapp

    async def send(self, target: Target, text: str, key: str) -> str:
        raise NotImplementedError
