"""``POST /v1/responses/compact``: a conversation as what its user said, and one item that stands for the rest."""

from typing import Any

from responses_app.database import database
from responses_app.protocol.failures import TurnFailed, failed_turn
from responses_app.protocol.items import COMPACTION, Item
from responses_app.protocol.response_object import ResponseBody, json_body
from responses_app.protocol.status import Status
from responses_app.requests.compact import read_compact
from responses_app.requests.headers import SESSION_HEADER
from responses_app.requests.json_body import parse_body
from responses_app.streaming.generating import GeneratingConsumer


class CompactConsumer(GeneratingConsumer):
    async def answer(self, body: bytes) -> None:
        principal = await self.principal()
        asked = await parse_body(body)
        admission = await database.read(read_compact, asked, principal)
        admitted = await self.admit(admission, asked)
        final = await self.final(admitted.response_id)
        headers = self.admitted_headers(admitted, admission.ignored)
        # Its session is nobody's to go on with.
        told = [(name, value) for name, value in headers if name != SESSION_HEADER.lower().encode()]
        await self.send_json(compaction_of(final), headers=told)


def compaction_of(body: ResponseBody) -> dict[str, Any]:
    """The ended turn, as OpenAI shows it; one without a summary is an error."""
    if body["status"] == Status.FAILED:
        raise failed_turn(body["error"])
    if body["status"] != Status.COMPLETED:
        details = body["incomplete_details"] or {"reason": body["status"]}
        reason = details.get("message") or details["reason"]
        raise TurnFailed(f"The conversation was not compacted: {reason}.", "agent_incomplete", 502)
    return {
        "id": body["id"],
        "object": "response.compaction",
        "created_at": body["created_at"],
        # A summary that was begun and lost stands for nothing.
        "output": [
            _shown(item) for item in json_body(body)["output"] if item["status"] == "completed"
        ],
        "usage": body["usage"],
    }


def _shown(item: Item) -> Item:
    """As OpenAI does: a compaction has no status."""
    return {
        key: value for key, value in item.items() if key != "status" or item["type"] != COMPACTION
    }
