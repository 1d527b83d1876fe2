"""What is read from the log of a turn that goes on."""

from collections.abc import Callable

from gateway_app.runtime.resumption import Resumed, read_so_far
from responses_app.output import OutputBuilder
from tests.test_fold import RESPONSE_ID, opening


def resumed(say: Callable[[OutputBuilder], None]) -> Resumed:
    """As after a crash behind what is said."""
    first = OutputBuilder(RESPONSE_ID, [opening()])
    say(first)
    log = [opening(), *first.take()]
    second = OutputBuilder(RESPONSE_ID, log)
    second.close("incomplete")
    return read_so_far(log, second, {})


def test_a_call_of_another_server_is_not_ours_to_run() -> None:
    item = {"type": "mcp_call", "server_label": "elsewhere", "name": "look", "arguments": "{}", "status": "in_progress"}
    so_far = resumed(lambda builder: builder.opaque(item))
    assert so_far.pending == ()
    assert [item["type"] for item in so_far.items] == ["mcp_call"]
