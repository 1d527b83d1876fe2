"""Annotations between the shape of Chat Completions and that of Responses.

Chat Completions nests the fields under the name of the type; Responses has them beside it.
"""

from typing import Any

from responses_app.protocol.items import Annotation

URL_CITATION = "url_citation"
# Clients of the Responses API require these; some servers leave them out.
_DEFAULTS: dict[str, Any] = {"start_index": 0, "end_index": 0, "title": ""}


def from_chat(given: Any) -> Annotation | None:
    """None if it is no annotation."""
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        return None
    kind = given["type"]
    fields = given.get(kind)
    if not isinstance(fields, dict):
        fields = given
    annotation = fields | {"type": kind}
    if kind == URL_CITATION:
        for name, default in _DEFAULTS.items():
            if annotation.get(name) is None:
                annotation[name] = default
    return annotation


def to_chat(annotation: Annotation) -> dict[str, Any]:
    kind = annotation["type"]
    fields = {name: value for name, value in annotation.items() if name != "type"}
    return {"type": kind, kind: fields}
