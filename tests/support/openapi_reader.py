"""Holds what the server says against what its OpenAPI document says of it."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from tests.support.server import Server

METHODS = ("get", "post", "put", "patch", "delete")
# Headers of ours that change what an answer means: each must be described where it comes.
REPORTED = re.compile(r"x-hermes-.*|idempotency-replayed|x-should-retry|retry-after|www-authenticate|x-request-id")
Frame = dict[str, str]


class Reader:
    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        self._closed = closed(document)
        self.seen: set[tuple[str, str, str]] = set()  # method, path, status as described

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    yield method, path, item[method]

    def check(self, answer: httpx.Response) -> Any:
        """Status, headers, body and, where it was taken, the request; returns the body."""
        described = self._described(answer)
        kind = answer.headers["content-type"].split(";")[0]
        assert kind in described["content"], (kind, answer.request.url)
        if kind == "text/event-stream":
            return [self._check_frame(frame, described["content"][kind]["itemSchema"]) for frame in _frames(answer)]
        if kind != "application/json":
            return answer.text
        self.check_value(answer.json(), described["content"][kind]["schema"])
        return answer.json()

    def check_value(self, value: Any, schema: dict[str, Any]) -> None:
        found = [f"{list(error.absolute_path)}: {error.message[:600]}" for error in self._errors(value, schema)]
        assert not found, found

    def accepts(self, value: Any, schema: dict[str, Any]) -> bool:
        return not list(self._errors(value, schema))

    def body_schema(self, method: str, path: str) -> dict[str, Any]:
        schema: dict[str, Any] = self._closed["paths"][path][method]["requestBody"]["content"]["application/json"]
        return self.resolved(schema["schema"])

    def resolved(self, part: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in part:
            found: Any = self._closed
            for step in part["$ref"].removeprefix("#/").split("/"):
                found = found[step]
            part = found
        return part

    # -- the steps ----------------------------------------------------------------------
    def _described(self, answer: httpx.Response) -> dict[str, Any]:
        method, path = answer.request.method.lower(), self._path(answer.request.url.path)
        responses = self._closed["paths"][path][method]["responses"]
        status = str(answer.status_code)
        assert status in responses, (method, path, status, answer.read()[:300])
        self.seen.add((method, path, status))
        described = self.resolved(responses[status])
        reported = {name for name in answer.headers if REPORTED.fullmatch(name)}
        assert reported <= {name.lower() for name in described["headers"]}, (path, reported)
        if answer.is_success and answer.request.content:
            self.check_value(json.loads(answer.request.content), self.body_schema(method, path))
        return described

    def _path(self, path: str) -> str:
        if path in self.document["paths"]:
            return path
        templates: list[str] = list(self.document["paths"])
        patterns = {template: re.sub(r"\{\w+\}", "[^/]+", template) for template in templates}
        [found] = [template for template, pattern in patterns.items() if re.fullmatch(pattern, path)]
        return found

    def _errors(self, value: Any, schema: dict[str, Any]) -> Iterator[Any]:
        whole = {**schema, "components": self._closed["components"]}
        return iter(Draft202012Validator(whole).iter_errors(value))

    def _check_frame(self, frame: Frame, item: dict[str, Any]) -> Any:
        matching = [one for one in item.get("oneOf", [item]) if self.accepts(frame, one)]
        assert len(matching) == 1, (frame, len(matching))
        content = matching[0]["properties"]["data"].get("contentSchema")
        if content is None:
            return frame["data"]
        self.check_value(json.loads(frame["data"]), content)
        return {"event": frame.get("event"), **json.loads(frame["data"])}


def closed(schema: Any) -> Any:
    """The same with no room for other fields: one too many is as untrue as one too few."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    if schema.get("type") == "object" and "properties" in schema:
        return {"additionalProperties": False, **parts}
    return parts


def _frames(answer: httpx.Response) -> Iterator[Frame]:
    for block in answer.read().decode().split("\n\n"):
        lines = [line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            yield dict(lines)


class Client:
    """Asks, and holds every answer against the document."""

    def __init__(self, server: Server, http: httpx.Client) -> None:
        self.server = server
        self.http = http
        self.reader = Reader(http.get("/openapi.json").json())

    def ask(self, method: str, path: str, body: Any = None, status: int = 200, **sent: Any) -> Any:
        answer = self.http.request(method, path, json=body, **sent)
        assert answer.status_code == status, answer.text
        return self.reader.check(answer)

    def post(self, path: str, body: Any = None, status: int = 200, **sent: Any) -> Any:
        return self.ask("POST", path, body, status, **sent)

    def get(self, path: str, status: int = 200, **sent: Any) -> Any:
        return self.ask("GET", path, None, status, **sent)
