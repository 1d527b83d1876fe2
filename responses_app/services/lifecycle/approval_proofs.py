"""The proof in the id of a request for approval whose turn is not stored.

The client sends the request back with its approval. The ledger has no content of such a call, so
the id itself proves that the call is the one that was asked about.
"""

import base64
import hmac

import orjson
from django.conf import settings
from django.utils.crypto import salted_hmac

from responses_app.models import Response, ToolEvent
from responses_app.protocol.ids import PROOF_CHARS, item_id, location_of_item
from responses_app.protocol.items import APPROVAL_REQUEST, Item, request_id_of

SALT = "responses_app.approval_request"
PROOF_BYTES = 16  # an id of 64 characters in all: upstreams refuse longer ids of calls


def request_item(row: Response, index: int, server_label: str, name: str, arguments: str) -> Item:
    """The request, as the item of the output with this index."""
    item: Item = {
        "type": APPROVAL_REQUEST,
        "id": item_id(row.pk, APPROVAL_REQUEST, index),
        "server_label": server_label,
        "name": name,
        "arguments": arguments,
    }
    if not row.is_stored:
        item["id"] += _proof(settings.SECRET_KEY, row.owner_id, item["id"], item)
    return item


def is_unaltered(owner_id: int, event: ToolEvent, item: Item) -> bool:
    """Is the request that a client sent back the one that the event has asked about?"""
    request_id = request_id_of(item)
    location = location_of_item(request_id)
    if location is None:
        return False
    if event.arguments:
        names = (item["name"], f"{item['server_label']}.{item['name']}")
        return event.name in names and event.arguments == item["arguments"]
    plain_id = request_id[:-PROOF_CHARS]
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        expected = _proof(secret, owner_id, plain_id, item)
        if hmac.compare_digest(location.proof, expected):
            return True
    return False


def _proof(secret: str | bytes, owner_id: int, plain_id: str, item: Item) -> str:
    asked = [owner_id, plain_id, item["server_label"], item["name"], item["arguments"]]
    digest = salted_hmac(SALT, orjson.dumps(asked), secret=secret, algorithm="sha256").digest()
    return base64.urlsafe_b64encode(digest[:PROOF_BYTES]).decode().rstrip("=")
