"""Images that models can see: the kinds and sizes that nearly all of their servers take."""

import base64

MAX_IMAGE_BYTES = 4_000_000
MAX_IMAGES = 8  # of one result
KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")


def image_kind(start: bytes) -> str:
    """The kind of a file by its first bytes; empty if it is no image of KINDS."""
    if start.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if start.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if start.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return ""


def image_url(kind: str, encoded: str) -> str:
    """The data URL of an image in base64; empty where no model can be sent it."""
    if kind.lower() not in KINDS or len(encoded) * 3 // 4 > MAX_IMAGE_BYTES:
        return ""
    return f"data:{kind.lower()};base64,{encoded}"


def as_image_url(kind: str, data: bytes) -> str:
    return image_url(kind, base64.b64encode(data).decode())
