"""The gateway on another host, asked over HTTP when none runs here."""

import threading
import time
from dataclasses import dataclass
from typing import Any

import orjson
from django.conf import settings

SUFFIXES = ("/health/detailed", "/health")
MAX_BODY_BYTES = 1_000_000
FRESH_SECS = 5.0  # the dashboard refreshes every two seconds, however slow the other server is


@dataclass(frozen=True)
class Remote:
    is_alive: bool
    body: dict[str, Any] | None


UNREACHABLE = Remote(False, None)


def probe() -> Remote:
    """Takes the first address that answers 200 with a JSON object; may block for two timeouts."""
    if not settings.GATEWAY_HEALTH_URL:
        return UNREACHABLE
    base = base_url(settings.GATEWAY_HEALTH_URL)
    for suffix in SUFFIXES:
        body = _ask(base + suffix, settings.GATEWAY_HEALTH_TIMEOUT)
        if body is not None:
            return Remote(True, body)
    return UNREACHABLE


def base_url(url: str) -> str:
    url = url.rstrip("/")
    for suffix in SUFFIXES:
        if url.endswith(suffix):
            return url.removesuffix(suffix).rstrip("/")
    return url


def _ask(url: str, timeout_secs: float) -> dict[str, Any] | None:
    import httpx2  # comes with the SDK, and loads slowly

    key = settings.GATEWAY_HEALTH_KEY
    headers = {}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    deadline = time.monotonic() + timeout_secs
    received = b""
    try:
        with httpx2.stream("GET", url, headers=headers, timeout=timeout_secs) as response:
            if response.status_code != 200:
                return None
            for chunk in response.iter_bytes():
                received += chunk
                if time.monotonic() > deadline or len(received) > MAX_BODY_BYTES:
                    return None  # single bytes keep each read within its timeout
        body = orjson.loads(received)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError):
        return None
    if not isinstance(body, dict):
        return None
    return body


class Watch:
    """The last finding, for pages that must not wait; reading an old one starts a new probe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest: Remote | None = None
        self._due = 0.0

    def latest(self) -> Remote | None:
        with self._lock:
            if time.monotonic() >= self._due:
                self._due = float("inf")
                threading.Thread(target=self._refresh, name="remote-gateway", daemon=True).start()
            return self._latest

    def _refresh(self) -> None:
        try:
            self._latest = probe()
        finally:
            self._due = time.monotonic() + FRESH_SECS


watch = Watch()
