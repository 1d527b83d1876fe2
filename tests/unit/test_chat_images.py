"""An image in the form of Chat Completions is read as the same image in the form of Responses."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from responses_app.requests.chat_content import CHAT_IMAGE, as_content
from responses_app.requests.content import read_content

URL = "https://x.example/y.png"
IMAGE = {"type": "input_image", "image_url": URL, "detail": "low"}
FORMS: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
    {"type": "image_url", "image_url": URL, "detail": "low"},
]


@pytest.mark.parametrize("part", FORMS)
def test_both_forms_keep_the_address_and_the_detail(part: dict[str, Any]) -> None:
    assert read_content(as_content([part]), "user", "content") == [IMAGE]
    assert Draft202012Validator(CHAT_IMAGE).is_valid(part)


def test_everything_else_stays_as_it_is() -> None:
    content = ["text", {"type": "text", "text": "x"}, 5, None]
    assert as_content(content) == content
    assert as_content("text") == "text"
