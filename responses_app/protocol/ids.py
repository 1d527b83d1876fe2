"""Public ids: unguessable; the id of an item also holds its location."""

import re
import secrets
from dataclasses import dataclass

RESPONSE_PREFIX = "resp_"
RUN_PREFIX = "run_"
ITEM_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "compaction": "cmp",
}
PROOF_CHARS = 22  # behind the id of a request for approval: see approval_proofs
_ITEM_ID = re.compile(
    r"[a-z]+_(?P<response>[0-9a-f]{32})(?P<side>[io])(?P<index>[0-9a-f]{4})"
    rf"(?P<proof>[A-Za-z0-9_-]{{{PROOF_CHARS}}})?"
)


@dataclass(frozen=True)
class ItemLocation:
    response_id: str
    is_input: bool
    index: int
    proof: str = ""


def new_response_id() -> str:
    return RESPONSE_PREFIX + secrets.token_hex(16)


def run_id_of(response_id: str) -> str:
    """A run is a response under another name."""
    return RUN_PREFIX + response_id.removeprefix(RESPONSE_PREFIX)


def response_id_of(run_id: str) -> str | None:
    """None when this is not a run id."""
    if not run_id.startswith(RUN_PREFIX):
        return None
    return RESPONSE_PREFIX + run_id.removeprefix(RUN_PREFIX)


def new_session_id() -> str:
    return "sess_" + secrets.token_hex(12)


def new_call_id() -> str:
    return "call_" + secrets.token_hex(12)


def item_id(response_id: str, item_type: str, index: int, *, is_input: bool = False) -> str:
    side = "i" if is_input else "o"
    prefix = ITEM_PREFIXES.get(item_type, "item")
    return f"{prefix}_{response_id.removeprefix(RESPONSE_PREFIX)}{side}{index:04x}"


def location_of_item(item: str) -> ItemLocation | None:
    """Where an item id points, or None when it is not one of ours."""
    match = _ITEM_ID.fullmatch(item)
    if match is None:
        return None
    return ItemLocation(
        response_id=RESPONSE_PREFIX + match["response"],
        is_input=match["side"] == "i",
        index=int(match["index"], 16),
        proof=match["proof"] or "",
    )
