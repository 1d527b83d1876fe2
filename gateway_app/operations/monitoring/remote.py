"""The gateway elsewhere, asked over HTTP when none lives here."""

import threading
import time
from dataclasses import dataclass
from typing import Any

import orjson
from django.conf import settings

SUFFIXES = ("/health/detailed", "/health")
MAX_BODY_BYTES = 1_000_000
FRESH_SECS = 5.0  # the dashboard looks every two seconds, however slow the other server is


@dataclass(frozen=True)
class Remote:
    is_alive: bool
    body: dict[str, Any] | None


NOBODY = Remote(False, None)


def probe() -> Remote:
    """The first of the two addresses that answers 200 with a JSON object; blocks as long as the time limits allow."""
    if not settings.GATEWAY_HEALTH_URL:
        return NOBODY
    base = base_url(settings.GATEWAY_HEALTH_URL)
    for suffix in SUFFIXES:
        body = _ask(base + suffix, settings.GATEWAY_HEALTH_TIMEOUT)
        if body is not None:
            return Remote(True, body)
    return NOBODY


def base_url(url: str) -> str:
    url = url.rstrip("/")
    for suffix in SUFFIXES:
        if url.endswith(suffix):
            return url.removesuffix(suffix).rstrip("/")
    return url


def _ask(url: str, timeout_secs: float) -> dict[str, Any] | None:
    import httpx2  # comes with the SDK, and takes its time to load

    key = settings.GATEWAY_HEALTH_KEY
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    deadline = time.monotonic() + timeout_secs
    received = b""
    try:
        with httpx2.stream("GET", url, headers=headers, timeout=timeout_secs) as answer:
            if answer.status_code != 200:
                return None
            for chunk in answer.iter_bytes():
                received += chunk
                if time.monotonic() > deadline or len(received) > MAX_BODY_BYTES:
                    return None  # a drip of bytes keeps every single read in its limit
        body = orjson.loads(received)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError):
        return None
    return body if isinstance(body, dict) else None


class Watch:
    """The last finding for those who may not wait; looking at it starts the next probe when it is old."""

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
