"""``/metrics``: what Prometheus reads, counted at a real server."""

from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.model_stub import Answer, ModelStub
from tests.support.server import Server, eventually, script
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database


def scraped(server: Server) -> dict[str, float]:
    """Samples by name and labels, as in the text."""
    with server.http() as client:
        answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        sample.name + "".join(f" {label}={value}" for label, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_what_is_appended_read_and_ended_is_counted(make_server: Callable[..., Server]) -> None:
    server = make_server()
    assert scraped(server)["hermes_events_appended_total"] == 0
    steps = ({"call": "effect", "arguments": {"text": "x"}}, {"gate": "metrics"}, {"say": "done"})
    asked = {"input": script(*steps), "stream": True}
    with server.http() as client, client.stream("POST", "/v1/responses", json=asked) as answer:
        eventually(lambda: scraped(server)["hermes_streams_open"] == 1)
        # A turn that arrives before the runner starts is queued first.
        eventually(lambda: scraped(server)["hermes_responses_open state=running"] == 1)
        server.open_gate("metrics")
        received = answer.read()
    reply = eventually(lambda: (found := scraped(server))["hermes_streams_open"] == 0 and found)
    segments = stored_rows(server, "eventsegment", "first_position", "last_position")
    stored = sum(last - first + 1 for first, last in segments)
    assert reply["hermes_events_appended_total"] == stored
    assert received.count(b"event: ") <= reply["hermes_events_delivered_total"] <= stored
    assert reply["hermes_responses_total status=completed"] == 1
    assert reply["hermes_tool_seconds_count status=completed tool=effect"] == 1
    assert reply["hermes_commit_seconds_count"] > 0
    assert reply["hermes_log_lag_seconds"] < 5
    assert (reply["hermes_queue_age_seconds"], reply["hermes_responses_open state=queued"]) == (0, 0)


def test_what_waits_has_an_age(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_CONCURRENT="1")
    with server.http() as client:
        for gate in ("one", "two"):
            client.post("/v1/responses", json={"input": script({"gate": gate}), "background": True})
    eventually(lambda: scraped(server)["hermes_queue_age_seconds"] > 0)


def test_upstreams_are_timed_and_their_errors_are_named(make_server: Callable[..., Server], stub: ModelStub) -> None:
    server = make_server(
        HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m", HERMES_STREAM_RETRIES="0"
    )
    readiness = "/health/detailed"
    labels = "model=m provider=custom"
    with server.http() as client:
        assert client.get(readiness).json()["readiness"]["checks"]["model"]["asked_at"] is None
        assert client.post("/v1/responses", json={"input": "hi"}).json()["status"] == "completed"
        reply = scraped(server)
        assert reply[f"hermes_upstream_seconds_count {labels}"] == 1
        assert reply[f"hermes_upstream_first_event_seconds_count {labels}"] == 1
        assert client.get(readiness).json()["readiness"]["checks"]["model"]["status"] == "ok"
        stub.play(Answer(503, b"{}"))
        assert client.post("/v1/responses", json={"input": "hi"}).json()["status"] == "failed"
        reply = client.get(readiness).json()
    assert scraped(server)[f"hermes_upstream_errors_total code=server_error {labels}"] >= 1
    assert (reply["degraded"], reply["readiness"]["checks"]["model"]["error"]) == (["model"], "server_error")


def test_a_name_that_a_model_made_up_is_no_series(server: Server) -> None:
    with server.http() as client:
        client.post("/v1/responses", json={"input": script({"call": "made-up-tool", "arguments": {}})})
    reply = scraped(server)
    assert reply["hermes_tool_seconds_count status=failed tool=unknown"] >= 1
    assert [name for name in reply if "made-up" in name] == []
