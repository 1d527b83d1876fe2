"""Something of every kind that a path can name."""

import re
from collections.abc import Callable
from typing import Any

import requests


class Resources:
    """Made anew for each use: requests change, end and delete what they name."""

    def __init__(self, session: requests.Session, url: str) -> None:
        self._session = session
        self._url = url

    def ids(self, path: str) -> dict[str, str]:
        names = re.findall(r"\{(\w+)\}", path)
        if "item_id" in names:
            return self._item()
        makers: dict[str, Callable[[], str]] = {
            "model": lambda: "hermes-agent",
            "platform": lambda: "fake",
            "run_id": lambda: self._run()["run_id"],
            "response_id": lambda: self._run()["response_id"],
            "session_id": lambda: self._run()["session_id"],
            "conversation_id": lambda: self._item()["conversation_id"],
            "completion_id": self._completion,
        }
        return {name: makers[name]() for name in names}

    def _run(self) -> dict[str, str]:
        return self._post("/v1/runs", {"input": "Hello"})

    def _item(self) -> dict[str, str]:
        message = {"role": "user", "content": "Hello"}
        made = self._post("/v1/conversations", {"items": [message]})["id"]
        answer = self._session.get(f"{self._url}/v1/conversations/{made}/items")
        return {"conversation_id": made, "item_id": answer.json()["first_id"]}

    def _completion(self) -> str:
        messages = [{"role": "user", "content": "Hello"}]
        return self._post("/v1/chat/completions", {"messages": messages, "store": True})["id"]

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, str]:
        answer = self._session.post(f"{self._url}{path}", json=body)
        answer.raise_for_status()
        made: dict[str, str] = answer.json()
        return made
