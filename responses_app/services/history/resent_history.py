"""History that a client sends again is recognised by a running hash, and not stored twice.

The hash after a turn covers everything up to its last output. A request whose first items have
that hash repeats that turn and all before it, so only what follows needs to be stored.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from responses_app.models import Response, ResponseQuerySet
from responses_app.protocol.items import (
    CALLS,
    Content,
    ContentPart,
    Item,
    content_text,
    output_ids,
    without_fields,
)
from responses_app.services.history.chain_values import deleted_before
from responses_app.services.lifecycle.read_ahead import ReadAhead

EMPTY = ""
# Ends of turns to try, newest first: a client repeats everything but its last few items.
LOOK_BACK = 50


# -- hashes -----------------------------------------------------------------------------
def running_hashes(start: str, items: Iterable[Item]) -> Iterator[str]:
    """The hash after each item."""
    current = start
    for item in items:
        essence = _essence(item)
        if essence is not None:
            hashed = hashlib.sha256(current.encode())
            hashed.update(orjson.dumps(essence, option=orjson.OPT_SORT_KEYS))
            current = hashed.hexdigest()
        yield current


def hash_after(start: str, items: Iterable[Item]) -> str:
    current = start
    for current in running_hashes(start, items):  # noqa: B007
        pass
    return current


def chat_form(output: list[Item]) -> list[Item]:
    """An output as most chat clients send it back: one message of all its text, and their calls."""
    answered = output_ids(output)
    texts: list[str] = []
    message: Item | None = None
    calls: list[Item] = []
    for item in output:
        if item["type"] == "message":
            texts.append(content_text(item["content"]))
            message = message or item.copy()
        elif item["type"] in CALLS and item["call_id"] not in answered:
            calls.append(item)
    if message is None:
        return calls
    text = "".join(texts)
    message["content"] = [{"type": "output_text", "text": text, "annotations": []}]
    return [message, *calls]


def _essence(item: Item) -> list[Any] | None:
    """What makes two items the same, however a client writes them; reasoning comes and goes."""
    match item["type"]:
        case "message":
            return ["m", item["role"], _parts(item["content"])]
        case "function_call":
            return ["c", item["call_id"], item["name"], item["arguments"]]
        case "function_call_output":
            return ["o", item["call_id"], _parts(item["output"])]
        case "reasoning":
            return None
        case "mcp_approval_request":
            return ["x", without_fields(item, "id", "status", "approval_request_id")]
        case _:
            return ["x", without_fields(item, "id", "status")]


def _parts(content: Content | None) -> list[str]:
    """Each part as its kind and its text; a plain string is one part of text."""
    if isinstance(content, str):
        return ["t:" + content]
    return [_part(part) for part in content or ()]


def _part(part: ContentPart) -> str:
    detail = part.get("detail") or ""
    if "text" in part:
        return f"t{detail}:{part['text']}"
    if "refusal" in part:
        return f"r{detail}:{part['refusal']}"
    if "image_url" in part:
        return f"i{detail}:{part['image_url']}"
    if part["type"] == "input_file":
        return f"f{part.get('filename') or ''}:{part.get('file_data') or part.get('file_url')}"
    return "?"


# -- the turn up to which a request repeats what is stored ------------------------------
@dataclass(frozen=True)
class Repeated:
    """The newest turn that a request repeats, and how many items that are."""

    last: Response
    items: int
    is_chat_form: bool  # the client sends outputs back as ``chat_form`` writes them


def possible_ends(items: list[Item]) -> dict[str, int]:
    """Hashes after the newest items that can end a repeated history, with its number of items."""
    counts: dict[str, int] = {}
    for index, hashed in enumerate(running_hashes(EMPTY, items[:-1])):
        # Reasoning alone has the hash of an empty history.
        if hashed != EMPTY and _may_end_a_turn(items[index]):
            counts[hashed] = index + 1
    newest = list(counts)[-LOOK_BACK:]
    return {hashed: counts[hashed] for hashed in newest}


def _may_end_a_turn(item: Item) -> bool:
    """A turn ends with something of the model, so a repeated history does too."""
    return bool(item["type"] != "message" or item["role"] == "assistant")


def find_repeated(owner_id: int, ends: dict[str, int], reads: ReadAhead) -> Repeated | None:
    if not ends:
        return None
    visible = Response.objects.visible_to(owner_id).filter(deleted_at__isnull=True)
    longest: tuple[str, str] | None = None
    for field, hashed in _known(visible, list(ends)):
        if longest is None or ends[hashed] > ends[longest[1]]:
            longest = (field, hashed)
    if longest is None:
        return None
    field, hashed = longest
    same = visible.filter(**{field: hashed}).select_related("session")
    found = same.order_by("-created_at").first()
    if found is None or deleted_before(found, reads):
        return None  # a deleted turn in between is no longer here to point at
    return Repeated(found, ends[hashed], is_chat_form=field == "chat_context_hash")


def _known(visible: ResponseQuerySet, hashes: list[str]) -> list[tuple[str, str]]:
    """Which of these hashes a stored turn has, and in which field; the exact one comes first."""
    known: list[tuple[str, str]] = []
    for field in ("context_hash", "chat_context_hash"):
        stored = visible.filter(**{f"{field}__in": hashes}).values_list(field, flat=True)
        for hashed in stored.distinct():
            known.append((field, hashed))
    return known
