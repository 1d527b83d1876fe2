"""Writes the golden set of the current format: a database as SQL, and what the API says of every response in it.

Run once for a new format version: ``python -m tests.golden.make``. Sets that are there are never made again.
"""

import gzip
import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.approvals import until_waiting
from tests.support.checker import listed
from tests.support.scripted_requests import call, start_background
from tests.support.server import Server, eventually

FOLDER = Path(__file__).resolve().parent
VERSIONS = "SELECT DISTINCT format_version FROM responses_app_eventsegment"
MERGED = "SELECT count(*) FROM responses_app_response WHERE is_log_merged"


def main() -> None:
    with tempfile.TemporaryDirectory() as home:
        server = Server(Path(home))
        server.manage("migrate", "--verbosity", "0")
        server.start()
        try:
            _fill(server)
            reported = {body["id"]: _stored(server, body) for body in listed(server)}
        finally:
            server.kill()
        with closing(sqlite3.connect(Path(home) / "hermes.sqlite3")) as database:
            database.execute("UPDATE gateway_app_runtimeprocess SET host = 'golden'")  # the real name is private
            [(version,)] = database.execute(VERSIONS)
            dump = "\n".join(database.iterdump())
    name = f"v{version}"
    if (FOLDER / f"{name}.sql.gz").exists():
        sys.exit(f"The golden set {name} is there; a new one needs a new format version.")
    (FOLDER / f"{name}.sql.gz").write_bytes(gzip.compress(dump.encode(), mtime=0))
    (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps(reported, indent=1).encode(), mtime=0))


def _fill(server: Server) -> None:
    first = start_background(server, {"think": "hm"}, {"say": "An answer with ünicode."})
    server.ended(first)
    tool = start_background(server, {"say": "so: "}, call("effect", text="once"), previous_response_id=first)
    server.ended(tool)
    server.ended(
        start_background(server, call("safe_effect", text="mcp"), tools=[{"type": "mcp", "server_label": "hermes"}])
    )
    server.ended(start_background(server, {"say": "half "}, {"fail": "the upstream is gone"}))
    stopped = start_background(server, {"say": "stopped "}, {"gate": "never"})
    eventually(lambda: "stopped " in str(server.body(stopped)["output"]))
    with server.http() as client:
        client.post(f"/v1/responses/{stopped}/cancel")
        conversation = client.post("/v1/conversations", json={"name": "golden"}).json()["id"]
    server.ended(start_background(server, {"say": "in a conversation"}, conversation=conversation))
    eventually(lambda: server.query(MERGED)[0][0] >= 6, 30, "the merged logs")
    until_waiting(server, start_background(server, {"say": "may I? "}, call("guarded", text="consented")))
    server.ended(start_background(server, {"say": "not merged"}))


def _stored(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    is_open = body["status"] in ("queued", "in_progress")
    frames = [] if is_open else [frame.decode() for frame in server.replay(body["id"])]
    return {"body": body, "frames": frames}


if __name__ == "__main__":
    main()
