"""The exchange of hints with other processes, over groups of the channel layer."""

import asyncio
import logging
from typing import Any, cast

from channels.layers import get_channel_layer

from gateway_app.runtime.layer_channels import new_channel
from gateway_app.runtime.roles import Role
from gateway_app.runtime.runner import Runner
from responses_app.eventlog.carried_segments import unseal_segments
from responses_app.eventlog.hints import GROUP, WORKERS, Hint, hints, send_hint
from responses_app.eventlog.segments import Segment
from responses_app.eventlog.store import event_store
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.sealing import NotSealedHere
from responses_app.services.lifecycle.claim import process_id
from responses_app.streaming.revocation import revocation

logger = logging.getLogger(__name__)
layer_log = ThrottledLog(logger, "The channel layer takes no hints; readers are up to 1 s late")
message_log = ThrottledLog(logger, "A hint had no effect; the next poll finds what it was about")

PAUSE_SECS = 0.5  # after a failure; what comes meanwhile is sent together


async def send_hints() -> None:
    """Each commit makes one hint; while one is sent, the next ones become one."""
    while True:
        hint = await hints.take()
        try:
            await send_hint(hint, process_id())
        except Exception as error:  # whatever the client of Redis raises
            layer_log.error(error)
            await asyncio.sleep(PAUSE_SECS)


async def follow_hints(runner: Runner) -> None:
    group = GROUP
    if runner.claims.role == Role.WORKER:
        group = WORKERS
    channel = await _subscribe(group)
    while True:
        try:
            message = await _layer().receive(channel)
            await _take(message, runner)
        except Exception as error:  # what another version has sent, or a database that is away
            message_log.error(error)


async def _take(message: dict[str, Any], runner: Runner) -> None:
    hint = cast(Hint, message)
    if message["sender"] != process_id():
        _apply(hint, runner)
    if hint["is_key_revoked"]:  # in this process, too: a stream of the key may be open here
        await revocation.check()


async def _subscribe(group: str) -> str:
    while True:
        try:
            channel = await new_channel(_layer())
            await _layer().group_add(group, channel)
            return channel
        except Exception as error:  # whatever the client of Redis raises
            layer_log.error(error)
            await asyncio.sleep(PAUSE_SECS)


def _apply(hint: Hint, runner: Runner) -> None:
    logs = event_store.remote_logs
    if logs.has_reader_behind(hint["stored"]):
        logs.note(hint["stored"], _carried(hint))
    for response_id in hint["cancelled"]:
        if runner.claims.takes_stored or response_id in runner.runs:
            runner.cancel(response_id)


def _carried(hint: Hint) -> list[Segment]:
    if "segments" not in hint:
        return []
    try:
        return unseal_segments(hint["segments"])
    except NotSealedHere as error:
        message_log.error(error)
        return []


def _layer() -> Any:
    layer = get_channel_layer()
    assert layer is not None
    return layer
