"""Long texts as several messages, cut at the end of a paragraph, a line or a word."""

SEPARATORS = ("\n\n", "\n", ". ", " ")
LEAST_SHARE = 0.25  # a cut that leaves a shorter message is not worth its separator


def message_units(text: str) -> int:
    """UTF-16 units: platforms that count them count an emoji as two."""
    return len(text) + sum(ord(char) > 0xFFFF for char in text)


def split_text(text: str, room: int) -> list[str]:
    """Parts of at most ``room`` characters; joined, they are the text without outer spaces."""
    parts = []
    rest = text.strip()
    while message_units(rest) > room:
        end = _end_of_part(rest, room)
        parts.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    if rest:
        parts.append(rest)
    return parts


def first_part(text: str, room: int) -> str:
    parts = split_text(text, room)
    if not parts:
        return ""
    return parts[0]


def _end_of_part(text: str, room: int) -> int:
    longest = min(len(text), room)
    while message_units(text[:longest]) > room:
        longest -= 1
    for separator in SEPARATORS:
        found = text.rfind(separator, 0, longest)
        end = found + len(separator.rstrip(" "))
        if found >= 0 and end >= longest * LEAST_SHARE:
            return end
    return longest
