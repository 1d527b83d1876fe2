"""The shape of every error that the API returns."""

from typing import Any

import httpx


def assert_error(answer: httpx.Response, status: int, param: str | None) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/json"
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param, error
    assert answer.headers["x-request-id"]
    return error
