"""The fake platform with faults: files in the folder ``platform_faults`` of the home say which.

``receive``, ``send`` and ``mark`` hold a webhook before it is stored, a message before it is sent and a message that
was sent before it is noted, each until its file is gone. ``limits`` has so many refusals with a 429 to give first.
"""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from gateway_app.platforms.adapter import Received, SendFailed, Target
from gateway_app.platforms.fake import FakePlatform

POLL_SECS = 0.01


class GatedPlatform(FakePlatform):
    def _fault(self, name: str) -> Path:
        return Path(settings.HERMES_HOME) / "platform_faults" / name

    def read_webhook(self, headers: Mapping[str, str], body: bytes) -> Received:
        while self._fault("receive").exists():
            time.sleep(POLL_SECS)
        return super().read_webhook(headers, body)

    async def send(self, target: Target, text: str, key: str) -> str:
        self._refuse_at_limit()
        await self._pass("send")
        message_id = await super().send(target, text, key)
        await self._pass("mark")
        return message_id

    async def _pass(self, name: str) -> None:
        while self._fault(name).exists():  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECS)

    def _refuse_at_limit(self) -> None:
        limits = self._fault("limits")
        left = int(limits.read_text()) if limits.exists() else 0
        if left:
            limits.write_text(str(left - 1))
            raise SendFailed("The platform answered 429.", retry_after=0.2)
