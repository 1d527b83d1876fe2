"""erase_owner beside a server: what runs is cancelled first, and the key stops working."""

import json

import pytest

from tests.support.server import Server, script
from tests.support.stored_rows import count_rows, stored_rows

pytestmark = pytest.mark.any_database


def test_what_runs_is_cancelled_and_erased(server: Server) -> None:
    secret = server.managed("createkey", "of eve", "--owner", "eve").stdout.decode().strip()
    with server.http(secret) as client:
        body = {"input": script({"say": "begun "}, {"gate": "never-opened"}), "background": True}
        response_id = client.post("/v1/responses", json=body).json()["id"]
        done = server.managed("erase_owner", "eve")
        assert done.returncode == 0, done.stderr
        assert client.get(f"/v1/responses/{response_id}").status_code == 401
    receipt = json.loads(done.stdout)
    assert (receipt["erased"]["responses"], receipt["erased"]["api_keys"]) == (1, 1)
    assert count_rows(server, "response", id=response_id) == 0
    assert stored_rows(server, "user", "id", username="eve") == []
