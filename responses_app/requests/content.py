"""Content parts: text, images and refusals."""

import re
from typing import Any

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Content, ContentPart
from responses_app.requests.fields import an_object, choice, optional, text, wrong_type

TEXT_TYPES = ("input_text", "output_text", "text")
# An address needs a host: `http:///x` names none. The document shows the same pattern, so it
# spells out control characters: which of them `\s` means differs between languages.
_USER = r"([^\u0000-\u0020/?#@]*@)?"
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[^\u0000-\u0020/?#@:\[\]]+)"
IMAGE_URL = rf"https?://{_USER}{_HOST}(:[0-9]*)?([/?#][\s\S]*)?|data:image/[\s\S]+"
DETAILS = ("auto", "low", "high", "original")
_IMAGE_URL = re.compile(IMAGE_URL)
_detail = optional(choice(*DETAILS))


def read_content(content: Any, role: str, name: str) -> list[ContentPart]:
    """A message's content; a text of the assistant is output, whatever the client calls it."""
    own_type = "output_text" if role == "assistant" else "input_text"
    if isinstance(content, str):
        return [{"type": own_type, "text": content}]
    if not isinstance(content, list) or not content:
        raise wrong_type(name, "a string or an array of content parts")
    return [_read_part(part, own_type, f"{name}[{index}]") for index, part in enumerate(content)]


def read_tool_output(output: Any, name: str) -> Content:
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        raise wrong_type(name, "a string or an array of content parts")
    return [_read_part(part, "input_text", f"{name}[{index}]") for index, part in enumerate(output)]


def _read_part(part: Any, own_type: str, name: str) -> ContentPart:
    if isinstance(part, str):
        return {"type": own_type, "text": part}
    given = an_object(part, name)
    kind = text(given.get("type"), f"{name}.type")
    if kind in TEXT_TYPES:
        return {"type": own_type, "text": text(given.get("text"), f"{name}.text")}
    if kind == "input_image":
        return _read_image(given, name)
    if kind == "refusal" and own_type == "output_text":
        return {"type": "refusal", "refusal": text(given.get("refusal"), f"{name}.refusal")}
    raise InvalidRequest(
        f"{name}.type is {kind!r}; this server takes text and images.",
        param=f"{name}.type",
        code="unsupported_content_type",
    )


def _read_image(part: dict[str, Any], name: str) -> ContentPart:
    """Passed on as it is: this server never fetches what a client names."""
    url = part.get("image_url")
    if url is None:
        raise InvalidRequest(
            f"{name}.image_url is required; file ids are not supported.",
            param=f"{name}.image_url",
            code="unsupported_content_type",
        )
    if not _IMAGE_URL.fullmatch(text(url, f"{name}.image_url")):
        raise InvalidRequest(
            f"{name}.image_url must be an http(s) address with a host or a data:image/ URL.",
            param=f"{name}.image_url",
            code="invalid_image_url",
        )
    image: ContentPart = {"type": "input_image", "image_url": url}
    detail = _detail(part.get("detail"), f"{name}.detail")
    if detail is not None:
        image["detail"] = detail
    return image
