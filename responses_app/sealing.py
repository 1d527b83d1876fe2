"""Sealed content: what clients keep for us, which they can neither read nor change, nor use for somebody else."""

import base64
import binascii
import secrets
from functools import cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PREFIX = "hermes1."  # names the format: another one gets another number
NONCE_BYTES = 12
KEY_BYTES = 32


class NotSealedHere(Exception):
    """Altered, cut, another owner's, or of a server with another secret."""


def seal(owner_id: int, content: bytes) -> str:
    nonce = secrets.token_bytes(NONCE_BYTES)
    return PREFIX + _text(
        nonce + _cipher(settings.SECRET_KEY).encrypt(nonce, content, _bound_to(owner_id))
    )


def unseal(owner_id: int, sealed: str) -> bytes:
    raw = _bytes(sealed.removeprefix(PREFIX)) if is_sealed(sealed) else b""
    if len(raw) <= NONCE_BYTES:
        raise NotSealedHere
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            return _cipher(secret).decrypt(
                raw[:NONCE_BYTES], raw[NONCE_BYTES:], _bound_to(owner_id)
            )
        except InvalidTag:
            continue
    raise NotSealedHere


def is_sealed(value: str) -> bool:
    """By its looks: whether it is authentic, only ``unseal`` can tell."""
    return value.startswith(PREFIX)


@cache
def _cipher(secret: str) -> AESGCM:
    derivation = HKDF(
        algorithm=SHA256(), length=KEY_BYTES, salt=None, info=f"sealed content {PREFIX}".encode()
    )
    return AESGCM(derivation.derive(secret.encode()))


def _bound_to(owner_id: int) -> bytes:
    return f"owner {owner_id}".encode()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    """Of exactly the text that was made: base64 has several spellings of the same bytes."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
    return raw if _text(raw) == text else b""
