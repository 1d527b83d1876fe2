"""Images and files in the form of Chat Completions, which every API takes."""

from typing import Any

from responses_app.requests.content import image_detail, image_url
from responses_app.requests.files import input_file
from responses_app.requests.json_schema import Schema, any_of, ref, tagged
from responses_app.requests.structures import object_of

_url = object_of({"image_url": image_url, "detail": image_detail}, ("image_url",))
_object = object_of(
    {"image_url": object_of({"url": image_url, "detail": image_detail}, ("url",))},
    ("image_url",),
)
CHAT_IMAGE = any_of(
    tagged(_url.schema, "type", "image_url"), tagged(_object.schema, "type", "image_url")
)
_file = object_of({"file": input_file}, ("file",))
CHAT_FILE = tagged(_file.schema, "type", "file")
SCHEMAS: dict[str, Schema] = {"ChatPart": any_of(ref("InputPart"), CHAT_IMAGE, CHAT_FILE)}


def as_content(content: Any) -> Any:
    """The same content with images and files as in Responses, whose reader checks them."""
    if not isinstance(content, list):
        return content
    return [_as_part(part) for part in content]


def _as_part(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "file" and isinstance(part.get("file"), dict):
        return part["file"] | {"type": "input_file"}
    if part.get("type") != "image_url":
        return part
    image = part.get("image_url")
    if not isinstance(image, dict):
        return part | {"type": "input_image"}
    return part | {
        "type": "input_image",
        "image_url": image.get("url"),
        "detail": image.get("detail"),
    }
