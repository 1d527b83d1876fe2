"""The ids of calls, in a form that an upstream takes."""

import hashlib
import re
import string
from collections.abc import Iterable

CALL_ID_CHARS = 9
_LETTERS = string.digits + string.ascii_letters


def accepted_ids(given: Iterable[str], pattern: str) -> dict[str, str]:
    """Each id and the one to send: another server's may be too long, or of another form."""
    given = list(given)
    ids = {call_id: call_id for call_id in given if re.fullmatch(pattern, call_id)}
    used = set(ids.values())
    for call_id in given:
        if call_id not in ids:
            ids[call_id] = _free_id(call_id, used)
            used.add(ids[call_id])
    return ids


def _free_id(call_id: str, used: set[str]) -> str:
    """From a hash of the id, so that every later request has the same."""
    found = _short_id(call_id)
    while found in used:
        found = _short_id(found)
    return found


def _short_id(text: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest())
    letters = []
    for _ in range(CALL_ID_CHARS):
        number, index = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[index])
    return "".join(letters)
