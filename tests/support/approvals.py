"""Tool calls that wait for a decision, over plain HTTP."""

from typing import Any

import httpx

from tests.support.server import Server, eventually


def pending_approvals(server: Server, response_id: str) -> list[dict[str, Any]]:
    with server.http() as client:
        pending: list[dict[str, Any]] = client.get(f"/v1/responses/{response_id}/approval").json()["pending"]
    return pending


def until_waiting(server: Server, response_id: str, count: int = 1) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]] | None:
        pending = pending_approvals(server, response_id)
        return pending if len(pending) == count else None

    found: list[dict[str, Any]] = eventually(look, what="the wait for consent")
    return found


def until_parked(server: Server, response_id: str) -> None:
    """It waits, and no process works on it."""
    until_waiting(server, response_id)
    sql = "SELECT lease_owner, lease_until FROM responses_app_response WHERE id = ?"
    eventually(lambda: server.query(sql, response_id) == [("", None)], what="the lease to be given back")


def decide(server: Server, response_id: str, choice: str, **fields: Any) -> httpx.Response:
    with server.http() as client:
        return client.post(f"/v1/responses/{response_id}/approval", json={"choice": choice, **fields})
