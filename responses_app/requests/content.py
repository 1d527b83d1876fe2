"""Content parts: text, images and refusals."""

from typing import Any

from responses_app.errors import InvalidRequest
from responses_app.fold import Item
from responses_app.requests.fields import choice, text, wrong_type

TEXT_TYPES = ("input_text", "output_text", "text")
IMAGE_SCHEMES = ("http://", "https://", "data:image/")
DETAILS = ("auto", "low", "high", "original")


def read_content(content: Any, role: str, name: str) -> list[Item]:
    """A message's content; what the assistant said is output, whatever the client calls it."""
    own_type = "output_text" if role == "assistant" else "input_text"
    if isinstance(content, str):
        return [{"type": own_type, "text": content}]
    if not isinstance(content, list) or not content:
        raise wrong_type(name, "a string or an array of content parts")
    return [_read_part(part, own_type, f"{name}[{index}]") for index, part in enumerate(content)]


def read_tool_output(output: Any, name: str) -> str | list[Item]:
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        raise wrong_type(name, "a string or an array of content parts")
    return [_read_part(part, "input_text", f"{name}[{index}]") for index, part in enumerate(output)]


def _read_part(part: Any, own_type: str, name: str) -> Item:
    if isinstance(part, str):
        return {"type": own_type, "text": part}
    if not isinstance(part, dict):
        raise wrong_type(name, "an object")
    kind = part.get("type")
    if kind in TEXT_TYPES:
        return {"type": own_type, "text": text(part.get("text"), f"{name}.text")}
    if kind == "input_image":
        return _read_image(part, name)
    if kind == "refusal" and own_type == "output_text":
        return {"type": "refusal", "refusal": text(part.get("refusal"), f"{name}.refusal")}
    raise InvalidRequest(
        f"{name}.type is {kind!r}; this server takes text and images.",
        param=f"{name}.type",
        code="unsupported_content_type",
    )


def _read_image(part: Item, name: str) -> Item:
    """Passed on as it is: this server never fetches what a client names."""
    url = part.get("image_url")
    if url is None:
        raise InvalidRequest(
            f"{name}.image_url is required; file ids are not supported.",
            param=f"{name}.image_url",
            code="unsupported_content_type",
        )
    if not text(url, f"{name}.image_url").startswith(IMAGE_SCHEMES):
        raise InvalidRequest(
            f"{name}.image_url must be an http(s) address or a data:image/ URL.",
            param=f"{name}.image_url",
            code="invalid_image_url",
        )
    detail = part.get("detail")
    kept = {} if detail is None else {"detail": choice(*DETAILS)(detail, f"{name}.detail")}
    return {"type": "input_image", "image_url": url, **kept}
