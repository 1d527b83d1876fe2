"""Webhooks that are odd, damaged or repeated: what can be answered is answered once, and the rest harms nothing."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.graph_api import EVENTS, GraphApi, deliver_event, event, signature, text_message
from tests.support.platforms import inbox_row, response_of
from tests.support.server import Server, script
from tests.support.stored_rows import stored_rows


@pytest.fixture(autouse=True)
def clean(graph: GraphApi) -> None:
    graph.messages.clear()


def message(message_id: str, kind: str, content: Any, **fields: Any) -> dict[str, Any]:
    now = str(int(time.time()))
    return {"from": "491700", "id": message_id, "timestamp": now, "type": kind, kind: content, **fields}


@pytest.mark.any_database
@pytest.mark.parametrize("kind", ["edit", "revoke", "order", "a_type_of_next_year"])
def test_what_is_no_message_is_noted_and_not_answered(cloud: Server, graph: GraphApi, kind: str) -> None:
    deliver_event(cloud, event(messages=[message(f"wamid.{kind}", kind, {"body": "x"})]))
    assert inbox_row(cloud, f"wamid.{kind}") == [("ignored", f"A message of the type {kind}.", "")]


@pytest.mark.any_database
def test_messages_without_text_and_of_groups_are_not_answered(cloud: Server) -> None:
    deliver_event(cloud, event(messages=[message("wamid.empty", "text", None)]))
    assert inbox_row(cloud, "wamid.empty")[0][0] == "ignored"
    deliver_event(cloud, event(messages=[message("wamid.group", "text", {"body": "hi"}, group_id="G1")]))
    assert inbox_row(cloud, "wamid.group")[0][0] == "ignored"


@pytest.mark.any_database
@pytest.mark.parametrize("number", range(4))
def test_a_message_that_can_not_be_read_does_not_hold_the_others(cloud: Server, graph: GraphApi, number: int) -> None:
    damaged: list[Any] = ["no message", {"type": "text"}, {"from": ["x"], "id": "1", "type": "text"}, None]
    good = message(f"wamid.good{number}", "text", {"body": script({"say": "Good."})})
    given = event(messages=[damaged[number], good], statuses=[damaged[number], {"biz_opaque_callback_data": "x"}])
    assert deliver_event(cloud, given).json()["stored"] == 1
    graph.until_sent(1)


@pytest.mark.any_database
def test_a_time_that_makes_no_sense_is_replaced(cloud: Server, graph: GraphApi) -> None:
    given = message("wamid.time", "text", {"body": script({"say": "Now."})}, timestamp="17634492000000000")
    assert deliver_event(cloud, event(messages=[given])).status_code == 200
    graph.until_sent(1)


@pytest.mark.any_database
def test_a_body_that_is_nested_too_deeply_is_a_400(cloud: Server) -> None:
    body = b'{"entry":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    headers = {"X-Hub-Signature-256": signature(body)}
    assert httpx.post(cloud.url + EVENTS, content=body, headers=headers).status_code == 400


def test_ids_that_no_database_takes_are_cleaned(cloud: Server, graph: GraphApi) -> None:
    for number, command in enumerate(("/pause", "/resume")):
        given = message(f"wamid.\0\ud800{number}", "text", {"body": command})
        assert deliver_event(cloud, event(messages=[given])).status_code == 200
    graph.until_sent(2)
    assert stored_rows(cloud, "platformchat", "is_paused", chat_id="491700") in ([(False,)], [(0,)])


def test_a_webhook_that_comes_ten_times_at_once_is_one_message(cloud: Server, graph: GraphApi) -> None:
    given = text_message("wamid.parallel", script({"say": "Once."}))
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: deliver_event(cloud, given), range(10)))
    assert [answer.status_code for answer in answers] == [200] * 10
    assert sum(json.loads(answer.text)["stored"] for answer in answers) == 1
    response_of(cloud, "wamid.parallel")
    deliver_event(cloud, text_message("wamid.next", script({"say": "Next."})))
    graph.until_sent(2)
    assert graph.texts() == ["Once.", "Next."]
