"""``input_file``: a file in the message itself. The server fetches none from elsewhere."""

import base64
import binascii
from typing import Any, cast

from django.conf import settings

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import ContentPart
from responses_app.requests.fields import Field, Fields, short_text, text
from responses_app.requests.json_schema import NULL, STRING
from responses_app.requests.structures import object_of

MAX_NAME_CHARS = 500
MAX_FILE_BYTES = 7_000_000  # in base64 it still fits into the largest request body
_DIGIT = "[A-Za-z0-9+/]"
_DATA = f"(data:[^,]*;base64,)?({_DIGIT}{{4}})*({_DIGIT}{{2}}==|{_DIGIT}{{3}}=|{_DIGIT}{{4}})"


def _read_data(value: Any, name: str) -> str:
    data = text(value, name)
    encoded = data
    if data.startswith("data:"):
        header, _, encoded = data.partition(",")
        if not header.endswith(";base64"):
            raise _invalid(name, "must be base64, or a data: URL with base64")
    if len(encoded) * 3 // 4 > MAX_FILE_BYTES:
        raise InvalidRequest(
            f"{name} may have at most {MAX_FILE_BYTES} bytes.", param=name, code="file_too_large"
        )
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise _invalid(name, "must be base64, or a data: URL with base64") from None
    if not content:
        raise _invalid(name, "must not be empty")
    return data


def _refuse_id(value: Any, name: str) -> None:
    raise InvalidRequest(
        f"{name} is not supported: send the file as file_data.",
        param=name,
        code="unsupported_content_type",
    )


def _invalid(name: str, rule: str) -> InvalidRequest:
    return InvalidRequest(f"{name} {rule}.", param=name, code="invalid_file_data")


def _read_url(value: Any, name: str) -> str:
    url = text(value, name)
    if settings.HERMES_FILE_URLS != "pass":
        raise InvalidRequest(
            f"{name} is not accepted: files are never fetched. Send the file as file_data.",
            param=name,
            code="unsupported_file_url",
        )
    if not url.startswith(("http://", "https://")):
        raise InvalidRequest(f"{name} must be an http(s) address.", param=name)
    return url


_FIELDS: Fields = {
    "filename": short_text(MAX_NAME_CHARS),
    "file_data": Field(_read_data, STRING | {"pattern": f"^{_DATA}$"}).described(
        f"Base64 or a data: URL, at most {MAX_FILE_BYTES} bytes."
    ),
    "file_url": Field(_read_url, NULL).described(
        "Refused, unless HERMES_FILE_URLS is pass; then it may stand in place of file_data."
    ),
    "file_id": Field(_refuse_id, NULL).described("Not supported."),
}
_fields = object_of(_FIELDS)


def _read_file(value: Any, name: str) -> dict[str, Any]:
    given = _fields(value, name)
    has_data = given.get("file_data") is not None
    if has_data == (given.get("file_url") is not None):
        raise InvalidRequest(f"{name}.file_data is required.", param=f"{name}.file_data")
    return given


input_file = Field(_read_file, object_of(_FIELDS, ("file_data",)).schema)


def as_part(given: dict[str, Any]) -> ContentPart:
    part = {"type": "input_file"}
    for name in ("filename", "file_data", "file_url"):
        if given.get(name) is not None:
            part[name] = given[name]
    return cast(ContentPart, part)
