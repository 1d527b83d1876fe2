"""``POST /v1/responses/compact``: the user's messages, and a summary of the rest."""

from typing import Any

from responses_app.protocol.failures import TurnFailed, failed_turn
from responses_app.protocol.items import COMPACTION, Item, without_fields
from responses_app.protocol.response_object import ResponseBody, json_body
from responses_app.protocol.status import Status
from responses_app.requests.compact import read_compact
from responses_app.requests.headers import SESSION_HEADER
from responses_app.requests.json_body import parse_body
from responses_app.streaming.generating import GeneratingConsumer


class CompactConsumer(GeneratingConsumer):
    async def respond(self, body: bytes) -> None:
        principal = await self.principal()
        fields = await parse_body(body)
        admission = await self.read_request(read_compact, fields, principal)
        admitted = await self.admit(admission, fields)
        final, final_headers = await self.final(admitted.response_id)
        headers = self.admitted_headers(admitted, admission.ignored) + final_headers
        # No client can continue its session.
        session_header = SESSION_HEADER.lower().encode()
        sent = [(name, value) for name, value in headers if name != session_header]
        await self.send_json(compaction_payload(final), headers=sent)


def compaction_payload(body: ResponseBody) -> dict[str, Any]:
    """The ended turn as OpenAI returns it; a turn without a summary is an error."""
    if body["status"] == Status.FAILED:
        assert body["error"] is not None
        raise failed_turn(body["error"])
    if body["status"] != Status.COMPLETED:
        details = body["incomplete_details"] or {"reason": body["status"]}
        reason = details.get("message") or details["reason"]
        raise TurnFailed(f"The conversation was not compacted: {reason}.", "agent_incomplete", 502)
    output: list[Item] = []
    for item in json_body(body)["output"]:
        if item["status"] != "completed":  # a summary that was cut
            continue
        if item["type"] == COMPACTION:  # has no status at OpenAI
            item = without_fields(item, "status")
        output.append(item)
    return {
        "id": body["id"],
        "object": "response.compaction",
        "created_at": body["created_at"],
        "output": output,
        "usage": body["usage"],
    }
