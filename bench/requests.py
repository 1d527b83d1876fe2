"""Requests of the client to one target."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from bench.exchange import Connection, Exchange
from bench.wire import now_us, order

PATHS = {"chat": "/chat/completions", "responses": "/responses"}


@dataclass
class Client:
    """Requests to one target."""

    host: str
    port: int
    prefix: str
    key: str
    model: str
    api: str
    held: list[Connection] = field(default_factory=list)

    async def connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, self.host, self.port)
        return connection

    def ask(self, text: str, *, stream: bool, fields: dict[str, Any] | None = None, headers: str = "") -> Exchange:
        body: dict[str, Any] = {"model": self.model, **(fields or {})}
        if self.api == "chat":
            body["messages"] = [{"role": "user", "content": text}]
        else:
            body["input"] = text
        if stream:
            body["stream"] = True
        return self.exchange(f"POST {self.prefix}{PATHS[self.api]}", json.dumps(body), headers)

    def exchange(self, target: str, body: str = "", headers: str = "") -> Exchange:
        head = (
            f"{target} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nAuthorization: Bearer {self.key}\r\n{headers}"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return Exchange((head + body).encode(), asyncio.get_running_loop().create_future())

    def close(self) -> None:
        """Give up all connections that are held."""
        for connection in self.held:
            connection.close()
        self.held.clear()


_numbers = iter(range(now_us(), 2**62))  # no two requests of two runs are equal


def next_order(tokens: int, pace: float = 0.0, *, words: bool = False, after: float = 0.0) -> str:
    return order(next(_numbers), tokens, pace, words=words, after=after)
