"""Long texts as several messages, cut at the end of a paragraph, a line or a word."""

import unicodedata
from collections.abc import Iterator

SEPARATORS = ("\n\n", "\n", ". ", " ")
LEAST_SHARE = 0.25  # a cut that leaves a shorter message is not worth its separator
FENCE = "```"
CLOSING = f"\n{FENCE}"
JOINER = "\u200d"  # makes one picture of several emoji
LONGEST_CHARACTER = 40  # code points that are shown as one


def message_units(text: str) -> int:
    """UTF-16 units: platforms that count them count an emoji as two."""
    return len(text) + sum(ord(char) > 0xFFFF for char in text)


def split_text(text: str, room: int) -> list[str]:
    """Parts of at most ``room`` units; a block of code that is cut is closed and opened again."""
    return list(_parts(text, room))


def first_part(text: str, room: int) -> str:
    return next(_parts(text, room), "")


def _parts(text: str, room: int) -> Iterator[str]:
    rest = text.strip()
    while rest and not _fits(rest, room):
        end = _end_of_part(rest, room)
        fence = _open_fence(rest[:end], room)
        if fence:
            end = _end_of_part(rest, room - len(CLOSING))
            fence = _open_fence(rest[:end], room)
        part = rest[:end].rstrip()
        rest = _after(rest, end)
        if fence:
            part += CLOSING
            rest = f"{fence}\n{rest}"
        if part:
            yield part
    if rest.strip():
        yield rest


def _after(text: str, end: int) -> str:
    """Without the separator, but with the indentation of a line."""
    rest = text[end:]
    if text[end - 1] != "\n":
        rest = rest.lstrip(" ")
    return rest.lstrip("\n")


def _fits(text: str, room: int) -> bool:
    return len(text) <= room and message_units(text) <= room


def _open_fence(part: str, room: int) -> str:
    """The line that opens the block of code in which the part ends."""
    fence = ""
    if FENCE not in part:
        return fence
    for line in part.split("\n"):
        if not line.lstrip().startswith(FENCE):
            continue
        if fence:
            fence = ""
        else:
            fence = line.strip()
    # Its repetition must leave most of the room to the text, or the text would never end.
    is_short = 2 * (len(fence) + 1) < (room - len(CLOSING)) * LEAST_SHARE
    if not is_short:
        return ""
    return fence


def _end_of_part(text: str, room: int) -> int:
    longest = _longest_start(text, room)
    for separator in SEPARATORS:
        found = text.rfind(separator, 0, longest)
        end = found + len(separator.rstrip(" "))
        if found >= 0 and end > 0 and end >= longest * LEAST_SHARE:
            return end
    return _between_characters(text, longest)


def _longest_start(text: str, room: int) -> int:
    """How many code points fit; at least one, so that every text comes to its end."""
    units = 0
    for index, char in enumerate(text):
        units += 1 + (ord(char) > 0xFFFF)
        if units > room:
            return max(index, 1)
    return len(text)


def _between_characters(text: str, end: int) -> int:
    """The nearest cut before ``end`` that leaves each visible character whole."""
    for cut in range(end, max(end - LONGEST_CHARACTER, 0), -1):
        if not _is_within_character(text, cut):
            return cut
    return end


def _is_within_character(text: str, cut: int) -> bool:
    if cut >= len(text):
        return False
    before, after = text[cut - 1], text[cut]
    if JOINER in (before, after) or unicodedata.category(after).startswith("M"):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff":  # a tone of skin
        return True
    if not (_is_half_flag(before) and _is_half_flag(after)):
        return False
    start = cut
    while start > 0 and _is_half_flag(text[start - 1]):
        start -= 1
    return (cut - start) % 2 == 1


def _is_half_flag(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"
