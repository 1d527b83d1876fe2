"""An answer that broke off is continued by prefill, in the form of each server."""

from dataclasses import replace

import pytest

from gateway_app.agent.answer_buffer import CONTINUE
from gateway_app.agent.model_call import CutAt
from gateway_app.config.presets.registry import PRESETS
from gateway_app.providers.openai.chat_completions.prefill import continuation_upstream
from gateway_app.providers.openai.client import Upstream
from responses_app.protocol.items import Item
from tests.support.model_stub import (
    Answer,
    Begun,
    Call,
    Cut,
    Finish,
    ModelStub,
    Step,
    Text,
    Thought,
)
from tests.support.providers import CALL, Providers, RecordedRound, record_round

CHAT = "chat_completions"
PREFILLING = ("llamacpp", "vllm", "deepseek", "mistral")
ECHO: dict[str, tuple[Step, ...]] = {"mistral": (Text("Once  upon "),)}
REFUSED = Answer(400, b'{"error": {"message": "Assistant response prefill is incompatible with enable_thinking."}}')


async def broken_round(providers: Providers, name: str, *rest: Step, is_chat: bool = True) -> RecordedRound:
    providers.stub.play(Text("Once "), Text(" upon "), Cut())
    providers.stub.play(*rest, Finish())
    mode = CHAT if is_chat else "codex_responses"
    return await record_round(providers.provider(mode, name))


@pytest.mark.parametrize("name", PREFILLING)
async def test_the_text_goes_back_letter_by_letter_and_the_rest_follows_it(providers: Providers, name: str) -> None:
    recorded = await broken_round(providers, name, *ECHO.get(name, ()), Text(" a "), Text("time."))
    assert (recorded.text, recorded.cuts, recorded.finish.reason) == ("Once  upon  a time.", 1, "stop")
    last = providers.stub.asked[1].body["messages"][-1]
    assert (last["role"], last["content"]) == ("assistant", "Once  upon ")
    assert CONTINUE not in providers.shown(1)
    assert recorded.deviations == []


async def test_each_server_is_asked_in_its_form(providers: Providers) -> None:
    bodies = []
    for name in PREFILLING:
        await broken_round(providers, name, *ECHO.get(name, ()), Text("a"))
        bodies.append(providers.stub.asked[-1].body)
    assert [body.get("continue_final_message") for body in bodies] == [None, True, None, None]
    assert [body.get("add_generation_prompt") for body in bodies] == [None, False, None, None]
    assert [body["messages"][-1].get("prefix") for body in bodies] == [None, None, True, True]
    paths = [asked.path for asked in providers.stub.asked[1::2]]
    assert paths == [f"/v1{beta}/chat/completions" for beta in ("", "", "/beta", "")]


def test_a_key_goes_to_no_host_that_the_configuration_does_not_name() -> None:
    def address(base_url: str, name: str = "deepseek") -> str:
        return continuation_upstream(Upstream(name, "m", base_url=base_url)).base_url

    assert address("") == "https://api.deepseek.com/beta"
    assert address("https://api.deepseek.com/v1") == "https://api.deepseek.com/beta"
    assert address("https://proxy.example/deepseek/") == "https://proxy.example/deepseek/beta"
    assert address("https://vllm.example/v1", "vllm") == "https://vllm.example/v1"


@pytest.mark.parametrize(
    "pieces", [("Once  upon ",), ("On", "ce  upon", " "), ("Once  upon  a",), tuple("Once  upon ")]
)
async def test_an_echo_of_the_text_is_cut_however_it_is_split(providers: Providers, pieces: tuple[str, ...]) -> None:
    rest = " time." if pieces[-1].endswith("a") else " a time."
    recorded = await broken_round(providers, "mistral", *map(Text, pieces), Text(rest))
    assert recorded.text == "Once  upon  a time."


@pytest.mark.parametrize("rest", ["a time.", "Once more.", "Once"])
async def test_a_rest_that_only_begins_like_an_echo_is_kept(providers: Providers, rest: str) -> None:
    recorded = await broken_round(providers, "mistral", *map(Text, rest))
    assert recorded.text == f"Once  upon {rest}"


async def test_an_answer_that_breaks_off_in_its_echo_brings_nothing_new(providers: Providers) -> None:
    providers.stub.play(Text("Once upon"), Cut())
    providers.stub.play(Text("Once "), Cut())
    providers.stub.play(Text("Once upon"), Text(" a time."), Finish())
    recorded = await record_round(providers.provider(CHAT, "mistral"))
    assert (recorded.text, recorded.cuts) == ("Once upon a time.", 1)


async def test_an_answer_that_breaks_off_again_is_one_text_to_the_model(providers: Providers) -> None:
    for word in ("one ", "two ", "three "):
        providers.stub.play(Text(word), Cut())
    providers.stub.play(Text("four"), Finish())
    recorded = await record_round(providers.provider(CHAT, "llamacpp"))
    assert (recorded.text, recorded.cuts) == ("one two three four", 3)
    messages = providers.stub.asked[3].body["messages"]
    assert [message["content"] for message in messages] == ["Hi", "one two three "]


# -- what is not prefilled --------------------------------------------------------------
async def test_a_refusal_leads_to_the_note_and_is_remembered(providers: Providers) -> None:
    provider = providers.provider(CHAT, "llamacpp")
    providers.stub.play(Text("Once "), Cut())
    providers.stub.play(REFUSED)
    providers.stub.play(Text("upon"), Finish())
    recorded = await record_round(provider)
    assert (recorded.text, recorded.deviations) == ("Once upon", ["no prefill"])
    assert [CONTINUE in providers.shown(number) for number in range(3)] == [False, False, True]
    providers.stub.play(Text("Once "), Cut())
    providers.stub.play(Text("more"), Finish())
    assert (await record_round(provider)).text == "Once more"
    assert CONTINUE in providers.shown(4)


async def test_a_request_that_is_refused_in_every_form_is_not_held_against_prefill(providers: Providers) -> None:
    provider = providers.provider(CHAT, "llamacpp")
    providers.stub.play(Text("Once "), Cut())
    providers.stub.play(REFUSED)
    providers.stub.play(REFUSED)
    with pytest.raises(Exception, match="incompatible"):
        await record_round(provider)
    providers.stub.play(Text("Once "), Cut())
    providers.stub.play(Text("more"), Finish())
    assert (await record_round(provider)).text == "Once more"
    assert CONTINUE not in providers.shown(4)


@pytest.mark.parametrize("before", [(Thought("Hm."), Text("so ")), (Text("so "), Thought("Hm."))])
async def test_an_answer_with_reasoning_gets_the_note(providers: Providers, before: tuple[Step, ...]) -> None:
    providers.stub.play(*before, Cut())
    providers.stub.play(Text("far"), Finish())
    assert (await record_round(providers.provider(CHAT, "vllm"))).text == "so far"
    assert CONTINUE in providers.shown(1)
    assert "continue_final_message" not in providers.stub.asked[1].body


async def test_a_cut_call_is_not_prefilled(providers: Providers) -> None:
    providers.stub.play(Text("so "), Begun(Call("c1", "look", ('{"a',))), Cut())
    await record_round(providers.provider(CHAT, "vllm"))
    assert "`look` was cut off" in providers.shown(1)
    assert "continue_final_message" not in providers.stub.asked[1].body


async def test_white_space_alone_gets_the_note(providers: Providers) -> None:
    providers.stub.play(Text("\n\n"), Cut())
    await record_round(providers.provider(CHAT, "vllm"))
    assert CONTINUE in providers.shown(1)


@pytest.mark.parametrize(("name", "is_chat"), [("openai", True), ("ollama", True), ("custom", False), ("vllm", False)])
async def test_other_servers_get_the_note(providers: Providers, name: str, is_chat: bool) -> None:
    recorded = await broken_round(providers, name, Text("a time."), is_chat=is_chat)
    assert recorded.text == "Once  upon a time."
    assert providers.shown(1).count(CONTINUE) == 1


async def test_each_fallback_is_asked_in_its_own_form(providers: Providers) -> None:
    for number in range(5):
        providers.stub.play(Text(f"{number} "), Cut())
    with ModelStub() as other:
        first = providers.provider(CHAT, "custom")
        recorded = await record_round(first, providers.provider(CHAT, "vllm", base_url=other.url))
        asked = other.asked[0].body
    assert recorded.text == "0 1 2 3 4 Hello wörld 🎉"
    assert (asked["continue_final_message"], asked["messages"][-1]["content"]) == (True, "0 1 2 3 4 ")
    assert [CONTINUE in providers.shown(number) for number in range(5)] == [False, True, True, True, True]
    assert CONTINUE not in str(asked)


async def test_the_next_round_sees_one_message(providers: Providers) -> None:
    cut: Item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so "}]}
    rest: Item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "far"}]}
    call = replace(CALL, items=[*CALL.items, cut], cut_at=CutAt.TEXT).followed_by([rest])
    assert [item["content"] for item in call.items[1:]] == [[{"type": "output_text", "text": "so far"}]]
    assert call.cut_at is None


def test_every_preset_that_names_another_address_continues_by_prefix() -> None:
    for preset in PRESETS.values():
        assert not preset.continuation_url or preset.continuation == "prefix"
