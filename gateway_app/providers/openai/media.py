"""Images and files of a conversation, in the form that one upstream takes."""

import re
from collections.abc import Iterator
from dataclasses import replace

from gateway_app.agent.events import ModelFailed, ProtocolDeviation
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.file_parts import (
    FILE,
    as_text,
    newest_message,
    parts_field,
    with_parts,
)
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.errors import Refused
from responses_app.protocol.items import OUTPUTS, ContentPart, Item

IMAGE = "input_image"
UNSEEN = "[An image is left out here: this model can't see images.]"
NO_IMAGES, NO_FILES = ProtocolDeviation("no images"), ProtocolDeviation("no files")
_STATUSES = (400, 404, 415, 422, 500, 501)
_NOT = r"(?:\bnot?\b|n't|unsupported|unknown|unexpected|missing|only|without)"
_NOT_TEXT = r"must be a (?:valid )?string|expected.{0,30}(?:text|string)|content.{0,20}type"
_IMAGES = r"(?:image|vision|multi.?modal|modalit)"
_FILES = r"(?:file|document|pdf)"
# Something is wrong with this one image or file; others may be welcome.
_FAULTY = re.compile(
    r"download|fetch|decod|corrupt|invalid (?:image|file|base64)|too (?:large|big|many)|exceed",
    re.IGNORECASE,
)


def _refuses(kind: str) -> re.Pattern[str]:
    pattern = rf"{kind}.{{0,100}}{_NOT}|{_NOT}.{{0,100}}{kind}|{_NOT_TEXT}"
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


_REFUSES_IMAGES, _REFUSES_FILES = _refuses(_IMAGES), _refuses(_FILES)


class Media:
    """What one upstream refuses is not sent to it again while this process runs."""

    def __init__(self, upstream: Upstream) -> None:
        preset = upstream.preset
        self._sees: bool | None = upstream.options.get("vision", preset.sees)
        self._takes_files: bool = upstream.options.get("files", preset.takes_files)
        self._takes_addresses = upstream.api_mode == "codex_responses"

    async def adapted(self, call: ModelCall) -> tuple[ModelCall, list[ProtocolDeviation]]:
        """The call as this upstream takes it, and what it had to do without."""
        kinds = {part.get("type") for part in _parts(call)}
        if not kinds & {IMAGE, FILE}:
            return call, []
        newest = newest_message(call.items)
        items: list[Item] = []
        for index, item in enumerate(call.items):
            items.append(await self._adapted_item(item, is_new=index >= newest))
        deviations = []
        if IMAGE in kinds and self._sees is False:
            deviations.append(NO_IMAGES)
        if FILE in kinds and not self._takes_files:
            deviations.append(NO_FILES)
        return replace(call, items=items), deviations

    def learn(self, call: ModelCall, refused: Refused) -> bool:
        """Does the upstream refuse images or files that this call has? Then it can be asked again."""
        if refused.status not in _STATUSES or _FAULTY.search(refused.judged):
            return False
        kinds = {part.get("type") for part in _parts(call)}
        has_learned = False
        if IMAGE in kinds and self._sees is None and _REFUSES_IMAGES.search(refused.judged):
            self._sees = False
            has_learned = True
        if FILE in kinds and self._takes_files and _REFUSES_FILES.search(refused.judged):
            self._takes_files = False
            has_learned = True
        return has_learned

    async def _adapted_item(self, item: Item, *, is_new: bool) -> Item:
        parts = item.get(parts_field(item))
        if not isinstance(parts, list):
            return item
        adapted = [await self._adapted_part(part, is_new=is_new) for part in parts]
        return with_parts(item, adapted)

    async def _adapted_part(self, part: ContentPart, *, is_new: bool) -> ContentPart:
        if part.get("type") == IMAGE and self._sees is False:
            return {"type": "input_text", "text": UNSEEN}
        if part.get("type") != FILE:
            return part
        if "file_data" not in part:
            if self._takes_addresses:
                return part
            name = part.get("filename") or "file"
            raise ModelFailed(
                f"The file {name!r} is an address, which this model's server can't fetch.",
                "invalid_prompt",
            )
        return await as_text(part, takes_files=self._takes_files, is_new=is_new)


def _parts(call: ModelCall) -> Iterator[ContentPart]:
    for item in call.items:
        parts = item.get(parts_field(item))
        has_parts = item.get("type", "message") in ("message", *OUTPUTS)
        if has_parts and isinstance(parts, list):
            yield from parts
