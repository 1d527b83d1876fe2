"""One request again and again, each time with another of its writes disturbed."""

import threading
from collections.abc import Callable
from itertools import count

from tests.support.checker import History, Seen, check_effects, traces
from tests.support.scripted_requests import call
from tests.support.server import Server, eventually, script, text

MIN_WRITES = 15  # of one run with a tool: its admission, events, ledger and end


def read_beside(server: Server, client: Seen, asked: str) -> threading.Thread:
    thread = threading.Thread(target=client.read, args=(server, {"input": asked}), daemon=True)
    thread.start()
    return thread


def disturb_every_write(disturb: Callable[[int], bool]) -> None:
    """One run with the first write disturbed, one with the second, and so on to a run that has fewer."""
    runs = next(nth for nth in count(1) if not disturb(nth))
    print(runs - 1, "writes")
    assert runs > MIN_WRITES


def ask_until_stored(server: Server, history: History, label: str) -> None:
    """A client that asks again when the error says that nothing was stored."""
    asked = {"input": script({"say": "x "}, call("effect", text=label), {"say": "y"})}
    with server.http() as http:

        def answered() -> dict[str, object] | None:
            answer = http.post("/v1/responses", json=asked)
            if answer.status_code == 503:
                assert answer.json()["error"]["code"] == "storage_unavailable"
                return None
            assert answer.status_code == 200, answer.text
            body: dict[str, object] = answer.json()
            return body

        body = eventually(answered, 30, f"an answer to {label}")
    assert body["status"] == "completed", body
    assert text(body) == "x yThe result is " + label + "."
    history.note(body["id"])
    check_effects(traces(server))
