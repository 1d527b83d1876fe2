"""Images and files go to upstreams that take them, and as text to those that do not."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.events import ModelFailed
from responses_app.protocol.items import Item
from tests.support.model_stub import Answer
from tests.support.pdf_files import as_data_url, pdf
from tests.support.providers import CALL, Providers, record_round

IMAGE = "data:image/png;base64,aGVsbG8="
PDF = as_data_url(pdf("the answer is 42"))


def asking(*parts: Any) -> Any:
    item: Item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}, *parts]}
    return replace(CALL, items=[item])


SEEING = asking({"type": "input_image", "image_url": IMAGE})
READING = asking({"type": "input_file", "filename": "a.pdf", "file_data": PDF})
NOTING = asking({"type": "input_file", "filename": "a.txt", "file_data": as_data_url(b"plain", "text/plain")})


def refusal(message: str, status: int) -> Answer:
    return Answer(status, json.dumps({"error": {"message": message}}).encode())


@pytest.mark.parametrize(
    "answer",
    [
        refusal("image input is not supported - hint: if this is unexpected, you may need mmproj", 500),
        refusal("m-1 is not a multimodal model", 400),
        refusal("unknown variant `image_url`, expected `text`", 400),
        refusal("Invalid content type. image_url is only supported by certain models.", 400),
        refusal("No endpoints found that support image input", 404),
        refusal("messages[0].content must be a string", 400),
        refusal("Image input is not enabled for this model", 400),
    ],
)
async def test_a_model_that_refuses_images_is_asked_without_them(providers: Providers, answer: Answer) -> None:
    provider = providers.provider("chat_completions")
    providers.stub.play(answer)
    first = await record_round(provider, call=SEEING, retries=0)
    later = await record_round(provider, call=SEEING, retries=0)
    assert [IMAGE in providers.shown(index) for index in range(3)] == [True, False, False]
    assert "can't see images" in providers.shown(1)
    assert first.text == later.text == "Hello wörld 🎉"
    assert first.deviations == later.deviations == ["no images"]


@pytest.mark.parametrize(
    "answer", [refusal("Could not decode the image", 400), refusal("Image too large: not supported", 400)]
)
async def test_a_refusal_of_one_image_is_no_lack_of_sight(providers: Providers, answer: Answer) -> None:
    providers.stub.play(answer)
    with pytest.raises(ModelFailed):
        await record_round(providers.provider("chat_completions"), call=SEEING, retries=0)


async def test_the_profile_says_that_a_model_is_blind(providers: Providers) -> None:
    blind = providers.provider("chat_completions", options={"vision": False})
    recorded = await record_round(blind, call=SEEING, retries=0)
    assert providers.requests == 1
    assert IMAGE not in providers.shown(0)
    assert recorded.deviations == ["no images"]


async def test_images_of_tools_reach_models(providers: Providers) -> None:
    call: Item = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    parts: Any = [{"type": "input_text", "text": "a dot"}, {"type": "input_image", "image_url": IMAGE}]
    output: Item = {"type": "function_call_output", "call_id": "c1", "output": parts}
    shown = replace(CALL, items=[*CALL.items, call, output])
    for mode in ("chat_completions", "codex_responses"):
        await record_round(providers.provider(mode), call=shown, retries=0)
        assert IMAGE in providers.shown(-1)
        await record_round(providers.provider(mode, options={"vision": False}), call=shown, retries=0)
        assert IMAGE not in providers.shown(-1)
        assert "a dot" in providers.shown(-1)


@pytest.mark.parametrize("mode", ["chat_completions", "codex_responses"])
async def test_a_pdf_is_passed_to_upstreams_that_take_files(providers: Providers, mode: str) -> None:
    recorded = await record_round(providers.provider(mode, options={"files": True}), call=READING, retries=0)
    assert PDF in providers.shown(0)
    assert "a.pdf" in providers.shown(0)
    assert recorded.deviations == []


@pytest.mark.parametrize("mode", ["chat_completions", "codex_responses"])
async def test_others_get_its_text(providers: Providers, mode: str) -> None:
    recorded = await record_round(providers.provider(mode), call=READING, retries=0)
    assert PDF not in providers.shown(0)
    assert "the answer is 42" in providers.shown(0)
    assert recorded.deviations == ["no files"]


async def test_an_upstream_that_refuses_files_gets_the_text(providers: Providers) -> None:
    provider = providers.provider("chat_completions", "openai")
    providers.stub.play(refusal("Invalid content type: file is not supported by this model", 400))
    await record_round(provider, call=READING, retries=0)
    assert PDF in providers.shown(0)
    assert "the answer is 42" in providers.shown(1)


async def test_a_text_file_is_text_for_every_upstream(providers: Providers) -> None:
    await record_round(providers.provider("chat_completions", "openai"), call=NOTING, retries=0)
    assert '[file "a.txt"]\\nplain\\n[end of the file]' in providers.shown(0)


async def test_a_file_that_can_not_be_read_fails_with_its_name(providers: Providers) -> None:
    binary = asking({"type": "input_file", "filename": "a.bin", "file_data": as_data_url(b"\0\xff", "x/y")})
    with pytest.raises(ModelFailed, match=r"'a\.bin' can't be read: it is neither"):
        await record_round(providers.provider("chat_completions"), call=binary, retries=0)
    assert providers.requests == 0


async def test_a_later_turn_has_a_note_in_place_of_such_a_file(providers: Providers) -> None:
    binary = asking({"type": "input_file", "filename": "a.bin", "file_data": as_data_url(b"\0\xff", "x/y")})
    later: Item = {"type": "message", "role": "user", "content": "Go on without it."}
    await record_round(
        providers.provider("chat_completions"), call=replace(binary, items=[*binary.items, later]), retries=0
    )
    assert "[The file 'a.bin' can't be read: it is neither a text file nor a PDF file.]" in providers.shown(0)
