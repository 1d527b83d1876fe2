"""POST /v1/responses with stream: what is sent, in which order, and that it can be had again."""

import threading
from typing import Any

import httpx
import openai
import pytest

from tests.support.scripted_requests import REASONING_TEXT_AND_CALL
from tests.support.server import (
    Server,
    created_id,
    events,
    frames,
    script,
    streaming,
    text,
)


def stream_all(server: Server, **body: Any) -> list[bytes]:
    with streaming(server, **body) as (_, received):
        return list(received)


def test_a_text_answer_has_the_order_that_strict_helpers_accept(server: Server) -> None:
    received = stream_all(server, input="hello")
    kinds = [event["type"] for event in events(received)]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert received[-1] == b"data: [DONE]\n\n"


def test_event_lines_name_the_type_and_lines_end_with_lf(server: Server) -> None:
    for frame in stream_all(server, input="hello")[:-1]:
        name, data = frame.rstrip(b"\n").split(b"\n")
        assert name.removeprefix(b"event: ").decode() in data.decode()
        assert b"\r" not in frame


def test_reasoning_and_tools_come_as_items_of_their_own(server: Server) -> None:
    body = events(stream_all(server, input=REASONING_TEXT_AND_CALL))[-1]["response"]
    kinds = [item["type"] for item in body["output"]]
    assert kinds == ["reasoning", "message", "function_call", "function_call_output", "message"]
    assert body["output"][3]["output"] == [{"type": "input_text", "text": "42"}]
    assert server.body(body["id"])["output"][3]["output"] == "42"


def test_the_python_sdk_helper_accepts_every_scenario(server: Server) -> None:
    for asked in ("hello", REASONING_TEXT_AND_CALL, "calculate 2*3"):
        with server.openai().responses.stream(model="hermes-agent", input=asked) as stream:
            kinds = [event.type for event in stream]
            final = stream.get_final_response()
        assert kinds[0] == "response.created"
        assert final.status == "completed"
        assert final.output_text


def test_stream_and_non_stream_give_the_same_text_usage_and_status(server: Server) -> None:
    client = server.openai()
    plain = client.responses.create(model="hermes-agent", input=REASONING_TEXT_AND_CALL)
    streamed = events(stream_all(server, input=REASONING_TEXT_AND_CALL))[-1]["response"]
    assert plain.output_text == text(streamed)
    assert plain.usage is not None
    assert plain.usage.to_dict() == streamed["usage"]
    assert plain.status == streamed["status"] == "completed"


def test_the_response_can_be_read_from_the_first_byte_on(server: Server) -> None:
    asked = script({"say": "first words "}, {"gate": "first-byte"}, {"say": "last words"})
    with streaming(server, input=asked) as (_, received):
        response_id = created_id(next(received))
        assert server.body(response_id)["status"] == "in_progress"
        for frame in received:
            if b"words " in frame:
                break
        assert text(server.body(response_id)) == "first words "
        server.open_gate("first-byte")
        list(received)
    assert text(server.body(response_id)) == "first words last words"


def test_cut_at_every_event_and_resume_equals_the_uncut_run(server: Server) -> None:
    whole = stream_all(server, input=REASONING_TEXT_AND_CALL)
    response_id = created_id(whole[0])
    assert server.replay(response_id) == whole
    for cut in range(len(whole) - 1):
        assert server.replay(response_id, after=cut) == whole[cut + 1 :]


def test_a_reader_that_is_cut_live_at_every_event_misses_nothing(server: Server) -> None:
    asked = script({"say": "a b c d "}, {"gate": "live-cut"}, {"say": "e f g"})
    with streaming(server, input=asked) as (_, received):
        first = [next(received) for _ in range(8)]
        response_id = created_id(first[0])
        resumed: list[list[bytes]] = [[] for _ in range(8)]

        def resume(cut: int) -> None:
            resumed[cut] = server.replay(response_id, after=cut)

        readers = [threading.Thread(target=resume, args=(cut,)) for cut in range(8)]
        for reader in readers:
            reader.start()
        server.open_gate("live-cut")
        whole = first + list(received)
        for reader in readers:
            reader.join(20)
    for cut in range(8):
        assert resumed[cut] == whole[cut + 1 :]


def test_the_sdk_resumes_with_starting_after(server: Server) -> None:
    client = server.openai()
    whole = events(stream_all(server, input="hello"))
    response_id = whole[0]["response"]["id"]
    rest = list(client.responses.retrieve(response_id, stream=True, starting_after=5))
    assert [event.sequence_number for event in rest] == list(range(6, len(whole)))
    with client.responses.stream(response_id=response_id, starting_after=5) as stream:
        assert [event.sequence_number for event in stream] == list(range(6, len(whole)))
        assert stream.get_final_response().status == "completed"


def test_eventsource_gets_ids_and_resumes_by_last_event_id(server: Server) -> None:
    response_id = created_id(stream_all(server, input="hello")[0])
    url = f"/v1/responses/{response_id}?stream=true"
    with server.http() as client:
        with client.stream("GET", url, headers={"Accept": "text/event-stream"}) as answer:
            received = list(frames(answer))
        with client.stream("GET", url, headers={"Last-Event-ID": "5"}) as answer:
            resumed = list(frames(answer))
    assert received[6].startswith(b"id: 6\nevent: ")
    assert resumed == server.replay(response_id, after=5)


@pytest.mark.any_database
def test_a_silent_stream_is_kept_warm_by_comments(server: Server) -> None:
    asked = script({"gate": "heartbeat"}, {"say": "done"})
    with streaming(server, input=asked) as (_, received):
        first = [next(received) for _ in range(3)]
        server.open_gate("heartbeat")
        rest = list(received)
    assert first[2] == b": keepalive\n\n"
    assert events(rest)[-1]["type"] == "response.completed"


def test_a_model_that_fails_ends_with_response_failed(server: Server) -> None:
    received = events(stream_all(server, input=script({"say": "so far "}, {"fail": "no more"})))
    assert received[-1]["type"] == "response.failed"
    body = server.body(received[-1]["response"]["id"])
    assert body["error"] == {"code": "server_error", "message": "no more"}
    assert text(body) == "so far "
    assert body["output"][0]["status"] == "incomplete"
    plain = server.openai().responses.create(model="hermes-agent", input="please fail")
    assert plain.status == "failed"


def test_the_token_limit_ends_as_incomplete(server: Server) -> None:
    body = server.openai().responses.create(model="hermes-agent", input="write 50 words", max_output_tokens=5)
    assert body.status == "incomplete"
    assert body.incomplete_details is not None
    assert body.incomplete_details.reason == "max_output_tokens"
    assert len(body.output_text.split()) == 5


def test_hostile_model_output_neither_breaks_frames_nor_the_database(server: Server) -> None:
    reply = "nul:\0 lone:\ud800 newline:\n\n event: x\r\n line:\u2028 end"
    body = server.openai().responses.create(model="hermes-agent", input=script({"say": reply}))
    assert body.output_text == "nul:\ufffd lone:\ufffd newline:\n\n event: x\r\n line:\u2028 end"


def test_headers_of_a_stream(server: Server) -> None:
    with streaming(server, input="hello") as (answer, received):
        list(received)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "no-cache" in answer.headers["cache-control"]
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["x-request-id"].startswith("req_")
    assert answer.headers["x-hermes-session-id"].startswith("sess_")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_a_background_response_is_queued_first(server: Server) -> None:
    client = server.openai()
    asked = script({"gate": "background"}, {"say": "done"})
    created = client.responses.create(model="hermes-agent", input=asked, background=True)
    assert created.status == "queued"
    server.open_gate("background")
    server.ended(created.id)
    kinds = [event["type"] for event in events(server.replay(created.id))]
    assert kinds[:3] == ["response.created", "response.queued", "response.in_progress"]
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="hermes-agent", input="x", background=True, store=False)
    assert refused.value.param == "background"


def test_a_cursor_ahead_an_unknown_id_and_a_deleted_response_are_three_errors(server: Server) -> None:
    response_id = created_id(stream_all(server, input="hello")[0])
    with server.http() as client:
        ahead = client.get(f"/v1/responses/{response_id}?stream=true&starting_after=9999")
        unknown = client.get("/v1/responses/resp_unknown?stream=true")
        assert client.delete(f"/v1/responses/{response_id}").json()["deleted"] is True
        deleted = client.get(f"/v1/responses/{response_id}?stream=true")
    answers: list[httpx.Response] = [ahead, unknown, deleted]
    assert [answer.status_code for answer in answers] == [400, 404, 404]
    codes = [answer.json()["error"]["code"] for answer in answers]
    assert codes == ["cursor_ahead_of_log", "response_not_found", "response_deleted"]
    assert ahead.json()["error"]["param"] == "starting_after"
