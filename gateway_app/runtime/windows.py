"""The context window of a model, and how its upstream counts, as far as this process knows.

Servers that report the window are asked in a thread, when a request first needs it. A server that
does not answer costs nothing but the wait of the first turn.
"""

import asyncio
import logging
import threading
import time
from dataclasses import dataclass, field
from enum import StrEnum

import orjson

from gateway_app.agent.budget import Correction
from gateway_app.config.known_windows import known_window
from gateway_app.config.models import Model, public_address
from gateway_app.config.presets.registry import PRESETS
from gateway_app.providers.model_server import ask_server

logger = logging.getLogger(__name__)

REQUEST_SECS = 3.0
FIRST_TURN_SECS = 1.5  # to wait for an answer; later turns use what is known by then
FRESH_SECS = 600.0  # a local server may be started again with another window
RETRY_SECS = 60.0  # after no report


class WindowSource(StrEnum):
    """Where the size of a window comes from, in the order in which they count."""

    PROFILE = "profile"
    SETTING = "HERMES_CONTEXT_LENGTH"
    SERVER = "model server"
    TABLE = "table of known models"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Window:
    tokens: int = 0
    source: WindowSource = WindowSource.UNKNOWN

    def __str__(self) -> str:
        if not self.tokens:
            return "unknown"
        return f"{self.tokens} tokens ({self.source})"


@dataclass
class _Upstream:
    """One model of one server."""

    correction: Correction
    reported: int = 0
    asked_at: float | None = None
    answered: threading.Event = field(default_factory=threading.Event)


class Windows:
    def __init__(self) -> None:
        self._upstreams: dict[bytes, _Upstream] = {}
        self._lock = threading.Lock()

    def of_model(self, model: Model, *, may_ask: bool = True) -> Window:
        """What is known now; a server that was not asked lately is asked in the background."""
        if model["provider"] not in PRESETS:
            return Window()
        upstream = self._upstream(model)
        if may_ask:
            self._ask_if_due(model, upstream)
        if upstream.reported:
            return Window(upstream.reported, WindowSource.SERVER)
        tokens = known_window(model)
        if tokens:
            return Window(tokens, WindowSource.TABLE)
        return Window()

    async def ask_first(self, model: Model) -> bool:
        """Give the server of a model that is not known a moment; True if it reports its window."""
        if model["provider"] not in PRESETS:
            return False
        upstream = self._upstream(model)
        if upstream.answered.is_set():
            return False
        self._ask_if_due(model, upstream)
        await asyncio.to_thread(upstream.answered.wait, FIRST_TURN_SECS)
        upstream.answered.set()  # later turns do not wait for a silent server
        return upstream.reported > 0

    def ask_now(self, model: Model, timeout_secs: float) -> Window:
        """For a command that waits for the answer."""
        upstream = self._upstream(model)
        upstream.asked_at = time.monotonic()
        self._ask(model, upstream, timeout_secs)
        return self.of_model(model, may_ask=False)

    def correction(self, model: Model) -> Correction:
        return self._upstream(model).correction

    def _upstream(self, model: Model) -> _Upstream:
        key = orjson.dumps(model, option=orjson.OPT_SORT_KEYS)
        with self._lock:
            found = self._upstreams.get(key)
            if found is None:
                # The built-in model counts words.
                found = _Upstream(Correction(is_fixed=model["provider"] not in PRESETS))
                self._upstreams[key] = found
        return found

    def _ask_if_due(self, model: Model, upstream: _Upstream) -> None:
        now = time.monotonic()
        with self._lock:
            wait_secs = FRESH_SECS if upstream.reported else RETRY_SECS
            if upstream.asked_at is not None and now - upstream.asked_at < wait_secs:
                return
            upstream.asked_at = now
        threading.Thread(target=self._ask, args=(model, upstream), daemon=True).start()

    def _ask(self, model: Model, upstream: _Upstream, timeout_secs: float = REQUEST_SECS) -> None:
        try:
            reported = ask_server(model, timeout_secs).window
            if reported and reported != upstream.reported:
                address = public_address(model)
                logger.info("%s reports a window of %d tokens.", address, reported)
            upstream.reported = reported or upstream.reported
        except Exception as error:  # a turn must not fail for want of a number
            cause = type(error).__name__
            logger.info("%s reports no window (%s).", public_address(model), cause)
        finally:
            upstream.answered.set()


windows = Windows()
