"""Signals: the first one drains, the second one exits; and no child outlives this process."""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

logger = logging.getLogger(__name__)

SIGNALS = (signal.SIGTERM, signal.SIGINT)
ECHO_SECS = 0.25  # make sends a signal again that its whole group, and so this process, has got
GUEST_ECHO_SECS = 1.0  # so does uvicorn, when it next looks after its workers
Handler = Callable[[int, FrameType | None], object]


def handle_signals(begin: Callable[[], object], *, is_guest: bool = False) -> None:
    """Call ``begin`` on the running loop at the first signal, and end the process at the second.

    A guest in another server passes signals on to the server's own handlers; where there are none,
    or outside the main thread, nothing is installed.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_event_loop()
    began: list[float] = []
    echo_secs = ECHO_SECS
    if is_guest:
        echo_secs = GUEST_ECHO_SECS
    for number in _handled_signals():
        host: Handler | None = None
        if is_guest:
            found = signal.getsignal(number)
            if not callable(found) or found is signal.default_int_handler:
                continue
            host = found

        def handle(signum: int, frame: FrameType | None, host: Handler | None = host) -> None:
            now = time.monotonic()
            if began and now - began[0] > echo_secs:
                exit_now(128 + signum)
            if began:
                return
            began.append(now)
            loop.call_soon_threadsafe(begin)
            if host is not None:
                host(signum, frame)

        signal.signal(number, handle)


def _handled_signals() -> tuple[signal.Signals, ...]:
    """With SIGHUP, which comes when the terminal is closed, unless nohup has turned it off."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return SIGNALS
    return (*SIGNALS, signal.SIGHUP)


def exit_now(code: int) -> None:
    """End like a crash: the next start goes on from what is stored."""
    end_children()
    os._exit(code)


def exit_after(secs: float) -> None:
    """The process ends in time, even if a database or a thread hangs."""

    def give_up() -> None:
        logger.error("The shutdown hangs; the process ends now, as in a crash.")
        exit_now(1)

    timer = threading.Timer(secs, give_up)
    timer.daemon = True
    timer.start()


def end_children() -> None:
    """Tools and MCP servers have process groups of their own, which no supervisor would end."""
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                _end(int(child))


def _end(child: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(child) == child:
            os.killpg(child, signal.SIGKILL)
        else:
            os.kill(child, signal.SIGKILL)
