"""The short way of text deltas makes and reads the same bytes as the long one."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.protocol.events import REASONING_DELTA, TEXT_DELTA, Event
from responses_app.protocol.sse import encode_frame
from responses_app.protocol.text_frames import TextFrames, encoded_text

CLEAN_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
AWKWARD = ['"', "\\", ',"logprobs":[]}', '"delta":', "\n\n", "\ue000", "0", "\u2028", "é😀"]


def delta(text: str, index: int = 0) -> Event:
    return {
        "type": TEXT_DELTA,
        "item_id": f"msg_0{index}",
        "output_index": index,
        "content_index": 0,
        "delta": text,
        "logprobs": [],
    }


@given(CLEAN_TEXT, st.integers(0, 10**9), st.integers(0, 300))
def test_a_frame_is_that_of_the_event(text: str, sequence: int, index: int) -> None:
    frame = TextFrames(f"msg_0{index}", index).encode(text, sequence)
    assert frame == encode_frame(delta(text, index), sequence)


@pytest.mark.parametrize("text", AWKWARD)
def test_the_text_is_found_in_a_frame(text: str) -> None:
    found = encoded_text(encode_frame(delta(text), 7))
    assert found is not None
    assert orjson.loads(found) == text


def test_a_frame_with_more_than_text_is_left_to_the_long_way() -> None:
    with_logprobs = delta("a")
    with_logprobs["logprobs"] = [{"token": "a", "bytes": [97], "logprob": -0.5}]
    reasoning: Event = {"type": REASONING_DELTA, "item_id": "rs_0", "output_index": 0, "content_index": 0, "delta": "a"}
    older = {name: value for name, value in delta("a").items() if name != "logprobs"}
    for event in (with_logprobs, reasoning, older):
        assert encoded_text(encode_frame(event, 7)) is None  # type: ignore[arg-type]
