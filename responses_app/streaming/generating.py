"""The base of consumers that generate: the client may leave while its request is admitted."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from responses_app.database import database
from responses_app.eventlog import LogErased
from responses_app.eventlog.snapshots import final_body
from responses_app.eventlog.store import event_store
from responses_app.http.session_key import SESSION_KEY_HEADER, read_session_key
from responses_app.protocol.errors import ApiError, ResponseDeleted
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import OnDisconnect
from responses_app.requests.client_options import ClientOptions, read_client_options
from responses_app.requests.clients import read_reasoning_form
from responses_app.requests.headers import (
    IGNORED_HEADER,
    SESSION_HEADER,
    TURN_POLICY_HEADER,
    ignored_value,
    read_session_id,
    read_turn_policy,
    usage_headers,
)
from responses_app.requests.idempotency import REPLAYED_HEADER, read_identity
from responses_app.requests.json_body import LOOP_BODY_BYTES, run_beside_loop
from responses_app.services.lifecycle.admission import Admission, Admitted
from responses_app.services.lifecycle.admit import admit
from responses_app.services.lifecycle.cancel import leave
from responses_app.streaming.base import Headers, HttpConsumer

T = TypeVar("T")

logger = logging.getLogger(__name__)


class GeneratingConsumer(HttpConsumer):
    """For every POST that generates, whatever the form of its response."""

    def __init__(self) -> None:
        super().__init__()
        self._admitting: asyncio.Future[Admitted] | None = None

    @property
    def session_id(self) -> str | None:
        return read_session_id(self.header(SESSION_HEADER))

    @property
    def client_options(self) -> ClientOptions:
        return read_client_options(self.header)

    async def read_request(self, read: Callable[..., T], *args: Any) -> T:
        """Check a request: in a thread, unless its body is small and all it names is known."""
        if self.body_bytes > LOOP_BODY_BYTES:
            return await database.read(read, *args)
        return await database.look_up(read, *args)

    async def admit(self, admission: Admission, body: dict[str, Any]) -> Admitted:
        """Headers give the session key, the turn policy, the idempotency key and the client."""
        path = self.scope["path"]
        identity = await run_beside_loop(self.body_bytes, read_identity, self.header, path, body)
        turn_policy = read_turn_policy(self.header(TURN_POLICY_HEADER))
        admission = replace(
            admission,
            session_key=read_session_key(self.header(SESSION_KEY_HEADER)),
            turn_policy=turn_policy or admission.turn_policy,
            reasoning_form=read_reasoning_form(self.header),
            identity=identity,
        )
        self._admitting = asyncio.ensure_future(admit(admission))
        return await asyncio.shield(self._admitting)

    def admitted_headers(self, admitted: Admitted, ignored: tuple[str, ...]) -> Headers:
        """For every response to an admitted request, failures included."""
        headers: Headers = [(SESSION_HEADER.lower().encode(), admitted.session_id.encode())]
        names = list(ignored)
        if self.header(SESSION_HEADER) not in (None, admitted.session_id):
            names.append(SESSION_HEADER)
        for turn in admitted.skipped_turns:
            names.append(f"deleted turn {turn}")
        names += admitted.left_out
        if names:
            headers.append((IGNORED_HEADER.lower().encode(), ignored_value(names).encode()))
        if admitted.is_replayed:
            headers.append((REPLAYED_HEADER.lower().encode(), b"true"))
        return headers

    async def final(self, response_id: str) -> tuple[ResponseBody, Headers]:
        """The ended response, and the headers that describe it."""
        try:
            final = await event_store.wait_final(response_id)
        except LogErased:
            raise ResponseDeleted(response_id) from None
        headers: Headers = []
        for name, value in usage_headers(is_estimated=final.is_usage_estimated).items():
            headers.append((name.lower().encode(), value.encode()))
        return final_body(final), headers

    async def disconnected(self) -> None:
        """A client that leaves during its admission still leaves a response behind.

        Not awaited: a server may end this task before the admission is committed.
        """
        if self._admitting is not None:
            self._admitting.add_done_callback(leave_admitted)


def leave_admitted(admitting: asyncio.Future[Admitted]) -> None:
    if admitting.cancelled():
        return
    error = admitting.exception()
    if error is None:
        admitted = admitting.result()
        if admitted.on_disconnect is OnDisconnect.CANCEL:
            leave(admitted.response_id, admitted.tail, admitted.reader)
    elif not isinstance(error, ApiError):
        logger.error("A response without a client could not be admitted", exc_info=error)
