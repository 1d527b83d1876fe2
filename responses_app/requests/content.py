"""Content parts: text, images, files and refusals."""

import re
from typing import Any

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Content, ContentPart
from responses_app.requests import json_schema
from responses_app.requests.fields import Field, an_object, choice, schemas_of, text, wrong_type
from responses_app.requests.files import as_part, input_file
from responses_app.requests.json_schema import STRING, Schema, any_of, array_of, ref
from responses_app.requests.structures import array, object_of

TEXT_TYPES = ("input_text", "output_text", "text")
# An address needs a host: `http:///x` names none. The document shows the same pattern, so it
# spells out control characters: which of them `\s` means differs between languages.
_USER = r"([^\u0000-\u0020/?#@]*@)?"
_HOST = r"(\[[0-9A-Fa-f:.]+\]|[^\u0000-\u0020/?#@:\[\]]+)"
_IMAGE_URL = rf"https?://{_USER}{_HOST}(:[0-9]*)?([/?#][\s\S]*)?|data:image/[\s\S]+"
_IMAGE_URL_PATTERN = re.compile(_IMAGE_URL)


def _read_image_url(value: Any, name: str) -> str:
    """Passed on as it is: this server never fetches what a client names."""
    if value is None:
        raise InvalidRequest(
            f"{name} is required; file ids are not supported.",
            param=name,
            code="unsupported_content_type",
        )
    url = text(value, name)
    if not _IMAGE_URL_PATTERN.fullmatch(url):
        raise InvalidRequest(
            f"{name} must be an http(s) address with a host or a data:image/ URL.",
            param=name,
            code="invalid_image_url",
        )
    return url


image_url = Field(_read_image_url, STRING | {"pattern": f"^({_IMAGE_URL})$"}).described(
    "An http(s) address with a host, or a data:image/ URL."
)
image_detail = choice("auto", "low", "high", "original")
BREAKPOINT = "prompt_cache_breakpoint"
_text_part = object_of(
    {"text": text, "annotations": array(an_object, "objects"), BREAKPOINT: an_object}, ("text",)
)
_image_part = object_of(
    {"image_url": image_url, "detail": image_detail, BREAKPOINT: an_object}, ("image_url",)
)
_INPUT_PARTS: dict[str, Field[dict[str, Any]]] = dict.fromkeys(TEXT_TYPES, _text_part)
_INPUT_PARTS["input_image"] = _image_part
_INPUT_PARTS["input_file"] = input_file
_OUTPUT_PARTS = _INPUT_PARTS | {"refusal": object_of({"refusal": text}, ("refusal",))}

SCHEMAS: dict[str, Schema] = {
    "InputPart": json_schema.union("type", schemas_of(_INPUT_PARTS)),
    "OutputPart": json_schema.union("type", schemas_of(_OUTPUT_PARTS)),
}


def content_schema(part: str, *more: Schema) -> Schema:
    """The content of a message: ``part`` is the name of the schema of its parts."""
    return any_of(STRING, array_of(any_of(STRING, ref(part), *more), minItems=1))


def tool_output_schema(*more: Schema) -> Schema:
    return any_of(STRING, array_of(any_of(STRING, ref("InputPart"), *more)))


def read_content(content: Any, role: str, name: str) -> list[ContentPart]:
    """A message's content; a text of the assistant is output, whatever type the client gave it."""
    own_type = "input_text"
    if role == "assistant":
        own_type = "output_text"
    if isinstance(content, str):
        return [{"type": own_type, "text": content}]
    if not isinstance(content, list) or not content:
        raise wrong_type(name, "a string or an array of content parts")
    return [_read_part(part, own_type, f"{name}[{index}]") for index, part in enumerate(content)]


def _read_tool_output(output: Any, name: str) -> Content:
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        raise wrong_type(name, "a string or an array of content parts")
    return [_read_part(part, "input_text", f"{name}[{index}]") for index, part in enumerate(output)]


tool_output = Field(_read_tool_output, tool_output_schema())


def _read_part(part: Any, own_type: str, name: str) -> ContentPart:
    if isinstance(part, str):
        return {"type": own_type, "text": part}
    given = an_object(part, name)
    kind = text(given.get("type"), f"{name}.type")
    parts = _INPUT_PARTS
    if own_type == "output_text":
        parts = _OUTPUT_PARTS
    if kind not in parts:
        raise InvalidRequest(
            f"{name}.type is {kind!r}; this server takes text, images and files.",
            param=f"{name}.type",
            code="unsupported_content_type",
        )
    read = parts[kind].read(given, name)
    if kind == "refusal":
        return {"type": "refusal", "refusal": read["refusal"]}
    if kind == "input_file":
        return as_part(read)
    kept: ContentPart = {"type": "input_image"}
    if kind in TEXT_TYPES:
        kept = {"type": own_type, "text": read["text"]}
        if own_type == "output_text" and read.get("annotations"):
            kept["annotations"] = read["annotations"]
    else:
        kept["image_url"] = read["image_url"]
        if read.get("detail") is not None:
            kept["detail"] = read["detail"]
    if read.get(BREAKPOINT) is not None:
        kept["prompt_cache_breakpoint"] = read[BREAKPOINT]
    return kept
