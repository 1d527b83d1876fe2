"""An MCP server of the older protocol, without any library: ``mcp_raw_server.py HABIT...``.

``paged`` lists one tool per page, ``garbage`` prints other things among its messages, ``rude`` exits when the
first message is not ``initialize``, ``mute`` answers nothing, ``stubborn`` outlives its stdin and SIGTERM.
"""

import json
import signal
import sys
import threading
from typing import Any

HABITS = set(sys.argv[1:])
tools = ["alpha", "beta", "odd/näme"]


def send(**message: Any) -> None:
    if "garbage" in HABITS:
        sys.stdout.buffer.write(b'Welcome!\n\xff\xfe\n{"half": \n[]\n')
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def listing(cursor: str | None) -> dict[str, Any]:
    start = int(cursor or 0)
    end = start + 1 if "paged" in HABITS else len(tools)
    page = [{"name": name, "inputSchema": {"type": "object"}} for name in tools[start:end]]
    return {"tools": page} | ({"nextCursor": str(end)} if end < len(tools) else {})


def called(name: str) -> dict[str, Any]:
    if name == "beta":
        tools.append("gamma")
        send(method="notifications/tools/list_changed")
    return {"content": [{"type": "text", "text": f"{name} was called"}]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "raw", "version": "1"},
            }
        case "tools/list":
            return listing(params.get("cursor"))
        case "tools/call":
            return called(params["name"])
    return None


def main() -> None:
    print("the raw server starts", file=sys.stderr, flush=True)
    if "stubborn" in HABITS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for number, line in enumerate(sys.stdin):
        message = json.loads(line)
        if "rude" in HABITS and number == 0 and message["method"] != "initialize":
            sys.exit(f"expected initialize, got {message['method']}")
        if "id" not in message or "mute" in HABITS:
            continue
        result = answer(message["method"], message.get("params", {}))
        if result is None:
            send(id=message["id"], error={"code": -32601, "message": "Method not found"})
        else:
            send(id=message["id"], result=result)
    if "stubborn" in HABITS:
        threading.Event().wait()


main()
