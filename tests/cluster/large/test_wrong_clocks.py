"""Hosts whose clocks are an hour apart: what they store and show stays true."""

from collections.abc import Callable

import httpx
import pytest

from tests.support.approvals import decide, until_parked
from tests.support.browser import credentials
from tests.support.checker import check_log
from tests.support.cluster import Cluster
from tests.support.other_machines import SkewedServer, SkewedWorker
from tests.support.server import Server, created_id, eventually, script, streaming, text
from tests.support.staff import log_in
from tests.support.stored_rows import stored_rows

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]
HOUR = 3600
GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


@pytest.mark.parametrize(("of_web", "of_worker"), [(HOUR, -HOUR), (-HOUR, HOUR)])
def test_turns_of_hosts_with_wrong_clocks_run_and_are_shown(
    make_cluster: Callable[..., Cluster], of_web: int, of_worker: int
) -> None:
    cluster = make_cluster()
    cluster.member(SkewedWorker, TEST_CLOCK_SKEW_SECS=str(of_worker))
    web = cluster.web()
    other = cluster.member(SkewedServer, TEST_CLOCK_SKEW_SECS=str(of_web))
    with streaming(other, model="hermes-agent", input=GATED) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ")
        web.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"
    check_log(web, response_id)
    check_an_approval(other, web)
    chained = other.openai().responses.create(model="hermes-agent", input="and then?", previous_response_id=response_id)
    assert chained.status == "completed"
    eventually(lambda: stored_rows(web, "response", "is_log_merged", id=response_id) == [(True,)], 30, "the merge")
    check_log(other, response_id)
    for member in cluster.webs:
        check_pages(member, response_id)
        assert "Traceback" not in member.log, member.log
    assert stored_rows(web, "response", "attempt", "crashes", id=response_id) == [(1, 0)]
    durations = stored_rows(web, "response", "total_ms", "first_output_ms")
    assert all(total >= 0 for total, _ in durations), durations


def check_an_approval(first: Server, second: Server) -> None:
    asked = script({"say": "first "}, {"call": "guarded", "arguments": {"text": "ran"}}, {"say": "after"})
    made = first.openai().responses.create(model="hermes-agent", input=asked, background=True)
    until_parked(first, made.id)
    assert decide(second, made.id, "once").status_code == 200
    assert "after" in text(first.ended(made.id))


def check_pages(server: Server, response_id: str) -> None:
    with httpx.Client(base_url=server.url, timeout=30, follow_redirects=True) as staff:
        log_in(staff, *credentials(server))
        for path in ("/dashboard/now", "/", f"/live/{response_id}", "/admin/responses_app/response/"):
            found = staff.get(path)
            assert found.status_code == 200, (path, found.text[:500])
