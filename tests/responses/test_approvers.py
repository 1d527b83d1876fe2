"""Who decides about a call that waits for consent, and what can be chosen."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from responses_app.services.lifecycle.tool_ledger import Intent
from tests.support.people import create_key
from tests.support.server import Server, eventually, script
from tests.support.staff import STAFF_PASSWORD, logged_in, make_staff
from tests.support.stored_rows import add_grant, stored_rows, update_rows

ASKED_FIRST = {"type": "mcp", "server_label": "hermes", "require_approval": "always"}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"call": name, "arguments": arguments}


def ask(client: httpx.Client, *steps: dict[str, Any], **fields: Any) -> str:
    body = {"input": script(*steps), "background": True, **fields}
    answer = client.post("/v1/responses", json=body, headers={"X-Hermes-Approval-Wait": "true"})
    assert answer.status_code == 200, answer.text
    response_id: str = answer.json()["id"]
    return response_id


def pending(client: httpx.Client, response_id: str, count: int = 1) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]] | None:
        found = client.get(f"/v1/responses/{response_id}/approval").json()["pending"]
        return found if len(found) == count else None

    found: list[dict[str, Any]] = eventually(look, 20, "the wait for consent")
    return found


def decide(client: httpx.Client, response_id: str, choice: str, **fields: Any) -> httpx.Response:
    return client.post(f"/v1/responses/{response_id}/approval", json={"choice": choice, **fields})


def ended(client: httpx.Client, response_id: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        body = client.get(f"/v1/responses/{response_id}").json()
        return body if body["status"] == "completed" else None

    found: dict[str, Any] = eventually(look, 20, "the end of the response")
    return found


def approver(server: Server, response_id: str) -> str:
    return str(stored_rows(server, "toolevent", "approver", response_id=response_id)[0][0])


def test_the_client_does_not_decide_what_is_for_operators(server: Server) -> None:
    with server.http(create_key(server, "not-an-operator")) as tenant:
        response_id = ask(tenant, call("guarded", text="for operators"))
        [waiting] = pending(tenant, response_id)
        assert waiting["choices"] == []
        for path in (f"/v1/responses/{response_id}/approval", f"/v1/runs/run_{response_id[5:]}/approval"):
            refused = tenant.post(path, json={"choice": "once"})
            error = refused.json()["error"]
            assert (refused.status_code, error["code"]) == (403, "approval_not_allowed"), path
            assert "operator" in error["message"]
            assert "root key" in error["message"]
        assert decide(tenant, response_id, "once", all=True).status_code == 403
        assert approver(server, response_id) == "operator"
        with logged_in(server) as operator:
            page = operator.page(f"/live/{response_id}")
            assert 'data-decisions="once session always deny"' in page
            token = operator.client.cookies.get("csrftoken") or ""
            allowed = operator.client.post(
                f"/live/{response_id}/approval", data={"choice": "once"}, headers={"X-CSRFToken": token}
            )
            assert allowed.status_code == 200, allowed.text
        assert "for operators" in str(ended(tenant, response_id)["output"])


def test_the_root_key_decides_about_its_own_calls(server: Server) -> None:
    with server.http() as root:
        response_id = ask(root, call("guarded", text="root"))
        [waiting] = pending(root, response_id)
        assert waiting["choices"] == ["once", "session", "always", "deny"]
        assert decide(root, response_id, "once").status_code == 200
        ended(root, response_id)


def test_a_call_that_is_for_the_client_is_decided_with_the_key_of_its_owner(server: Server) -> None:
    with server.http(create_key(server, "decides")) as tenant:
        response_id = ask(tenant, call("client_guarded", text="mine"))
        [waiting] = pending(tenant, response_id)
        assert waiting["choices"] == ["once", "session", "always", "deny"]
        assert approver(server, response_id) == "client"
        assert decide(tenant, response_id, "once").status_code == 200
        assert "mine" in str(ended(tenant, response_id)["output"])


def test_a_request_that_asks_to_be_asked_asks_its_client(server: Server) -> None:
    with server.http(create_key(server, "asked")) as tenant:
        response_id = ask(tenant, call("effect", text="asked for"), tools=[ASKED_FIRST])
        pending(tenant, response_id)
        assert approver(server, response_id) == "client"
        assert decide(tenant, response_id, "once").status_code == 200
        ended(tenant, response_id)
        other = ask(tenant, call("guarded", text="asked for"), tools=[ASKED_FIRST])
        pending(tenant, other)
        assert approver(server, other) == "operator"
        assert decide(tenant, other, "once").status_code == 403


def test_one_decision_for_all_leaves_what_is_for_operators(server: Server) -> None:
    with server.http(create_key(server, "mixed")) as tenant:
        response_id = ask(tenant, call("guarded", text="theirs"), call("client_guarded", text="mine"))
        pending(tenant, response_id, 2)
        assert decide(tenant, response_id, "once", all=True).json()["resolved"] == 1
        [left] = pending(tenant, response_id)
        assert left["tool"] == "guarded"


def test_consent_of_a_client_does_not_cover_a_call_that_is_for_operators(server: Server) -> None:
    with server.http(create_key(server, "granting")) as tenant:
        first = ask(tenant, call("client_guarded", text="granted"))
        pending(tenant, first)
        assert decide(tenant, first, "always").status_code == 200
        ended(tenant, first)
        ended(tenant, ask(tenant, call("client_guarded", text="granted")))  # does not wait again
        # As where an operator changes `approval: client` of an MCP server to `always`.
        tenant_id = stored_rows(server, "apikey", "id", name="granting")[0][0]
        guarded = {"name": "guarded", "arguments_digest": digest_of("guarded", '{"text":"granted"}')}
        assert update_rows(server, "approvalgrant", guarded, granted_by=f"key {tenant_id}") == 1
        waits = ask(tenant, call("guarded", text="granted"))
        pending(tenant, waits)


def digest_of(name: str, arguments: str) -> str:
    return Intent("", name, arguments).digest


def test_a_token_of_the_playground_counts_as_its_user(server: Server) -> None:
    make_staff(server, "playing", "use_playground")
    make_staff(server, "playing-decider", "use_playground", "decide_toolevent")
    with server.http(playground_token(server, "playing")) as player:
        response_id = ask(player, call("guarded", text="played"))
        assert pending(player, response_id)[0]["choices"] == []
        assert decide(player, response_id, "once").status_code == 403
        own = ask(player, call("client_guarded", text="played"))
        pending(player, own)
        assert decide(player, own, "once").status_code == 200
    with server.http(playground_token(server, "playing-decider")) as decider:
        response_id = ask(decider, call("guarded", text="played"))
        assert pending(decider, response_id)[0]["choices"] != []
        assert decide(decider, response_id, "once").status_code == 200


def playground_token(server: Server, name: str) -> str:
    with logged_in(server, name, STAFF_PASSWORD) as operator:
        token = operator.client.cookies.get("csrftoken") or ""
        answer = operator.client.post("/chat/token", headers={"X-CSRFToken": token})
        # The login stays: leaving this block only closes the connections.
        return str(answer.json()["token"])


@pytest.mark.parametrize(
    ("tool", "is_root", "choices"),
    [
        ("guarded", False, []),
        ("guarded", True, ["once", "session", "always", "deny"]),
        ("client_guarded", False, ["once", "session", "always", "deny"]),
    ],
)
def test_the_events_of_a_run_show_what_its_client_may_choose(
    server: Server, tool: str, is_root: bool, choices: list[str]
) -> None:
    key = server.key if is_root else create_key(server, f"reads-{tool}")
    with server.http(key) as client:
        run_id = client.post("/v1/runs", json={"input": script(call(tool, text="event"))}).json()["run_id"]
        response_id = f"resp_{run_id[4:]}"
        pending(client, response_id)
        shown = client.get(f"/v1/runs/{run_id}").json()["approval"]
        assert (shown["choices"], shown["approver"]) == (choices, approver(server, response_id))
        with server.http() as root:
            root.post(f"/v1/responses/{response_id}/cancel")
        client.post(f"/v1/runs/{run_id}/stop")
        [requested] = [
            line for line in client.get(f"/v1/runs/{run_id}/events").text.splitlines() if "approval.request" in line
        ]
    assert f'"choices":{str(choices).replace(chr(39), chr(34)).replace(" ", "")}' in requested


@pytest.mark.any_database
def test_consent_to_a_command_outside_the_sandbox_is_for_once(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_TERMINAL="unsandboxed")
    command = call("terminal", command="bash run.sh")
    with server.http() as client:
        for choice in ("session", "always"):
            response_id = ask(client, command, tools=[ASKED_FIRST])
            [waiting] = pending(client, response_id)
            assert waiting["choices"] == ["once", "deny"]
            refused = decide(client, response_id, choice)
            error = refused.json()["error"]
            assert (refused.status_code, error["param"]) == (400, "choice")
            assert "once or deny" in error["message"]
            assert decide(client, response_id, "once").status_code == 200
            ended(client, response_id)
        add_grant(server, response_id, "terminal", digest_of("terminal", '{"command":"bash run.sh"}'))
        pending(client, ask(client, command, tools=[ASKED_FIRST]))  # an earlier grant does not count
        free = ask(client, command)
        ended(client, free)  # without the request's own rule the mode never asks


@pytest.mark.any_database
def test_without_authentication_a_decision_needs_the_root_key_or_an_operator(
    make_server: Callable[..., Server],
) -> None:
    server = make_server(HERMES_AUTH="off")
    tenant_key = create_key(server, "any")
    with httpx.Client(base_url=server.url, timeout=30) as nameless, server.http() as root:
        for tool in ("guarded", "client_guarded"):
            response_id = ask(nameless, call(tool, text="own call"))
            [waiting] = pending(nameless, response_id)
            assert waiting["choices"] == []
            for key in ("", "hs-wrong", tenant_key):
                headers = {"Authorization": f"Bearer {key}"} if key else {}
                path = f"/v1/responses/{response_id}/approval"
                refused = nameless.post(path, json={"choice": "once"}, headers=headers)
                assert refused.status_code == 403, (tool, key)
                assert refused.json()["error"]["code"] == "approval_not_allowed"
            assert pending(root, response_id)[0]["choices"] != []
            assert decide(root, response_id, "once").status_code == 200
            ended(root, response_id)
        response_id = ask(nameless, call("guarded", text="operator"))
        pending(nameless, response_id)
        with logged_in(server) as operator:
            token = operator.client.cookies.get("csrftoken") or ""
            allowed = operator.client.post(
                f"/live/{response_id}/approval", data={"choice": "deny"}, headers={"X-CSRFToken": token}
            )
            assert allowed.status_code == 200, allowed.text
