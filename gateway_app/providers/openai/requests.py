"""POSTs to a model's server: the SDK builds the first of a kind, the others repeat its head."""

from collections.abc import Awaitable
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI

from gateway_app.providers.openai.transport import (
    BODY,
    RequestHead,
    ResponseBody,
    Transport,
    as_response,
)

# Makes the SDK hand over an answer unread, as its ``with_streaming_response`` does.
UNREAD = {"X-Stainless-Raw-Response": "stream"}


class Requests:
    """The SDK and its HTTP client take a third of a millisecond to build a request anew."""

    def __init__(self, sdk: AsyncOpenAI, transport: Transport) -> None:
        self._sdk = sdk
        self._transport = transport
        self._base_address = str(sdk.base_url)  # ends with a slash
        self._heads: dict[tuple[Any, ...], RequestHead] = {}

    async def post(self, path: str, content: bytes, headers: dict[str, Any]) -> ResponseBody:
        """Raises the errors of the SDK."""
        kind = (
            path,
            *headers.items(),
        )  # the headers are those of the client, with or without a retry
        if kind not in self._heads:
            return await self._first(kind, path, content, headers)
        head = self._heads[kind]
        try:
            received = await self._transport.send(head, content)
        except httpx2.TimeoutException as error:
            raise openai.APITimeoutError(request=head.as_request()) from error
        except httpx2.TransportError as error:
            raise openai.APIConnectionError(request=head.as_request()) from error
        if 200 <= received.status < 300:
            return ResponseBody(received)
        response = await as_response(received)
        response.request = head.as_request()
        raise self._sdk._make_status_error_from_response(response)

    async def _first(
        self, kind: tuple[Any, ...], path: str, content: bytes, headers: dict[str, Any]
    ) -> ResponseBody:
        """Past the SDK's methods: they walk through every field they are given."""
        options: openai.RequestOptions = {"headers": headers | UNREAD, "idempotency_key": ""}
        address = self._base_address + path
        sent_by_sdk = self._sdk.post(address, cast_to=object, content=content, options=options)
        answer: Any = await sent_by_sdk
        sent = answer.http_response.request
        self._heads[kind] = RequestHead(sent)
        body: ResponseBody = answer.http_response.extensions[BODY]
        return body


async def unread(sent: Awaitable[Any]) -> ResponseBody:
    """The body of an answer of the SDK alone: the rest would keep the request while it is read."""
    body: ResponseBody = (await sent).http_response.extensions[BODY]
    return body
