"""Sealed content: clients keep it, but can't read it, change it or use it for another owner.

What processes send each other through Redis has keys of its own.
"""

import base64
import binascii
import secrets
from functools import cache, lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PREFIX = "hermes1."  # names the format: another one gets another number
NONCE_BYTES = 12
KEY_BYTES = 32


class NotSealedHere(Exception):
    """Altered, cut, of another owner, or of a server with another secret."""


def seal(owner_id: int, content: bytes) -> str:
    nonce = secrets.token_bytes(NONCE_BYTES)
    sealed = _cipher(settings.SECRET_KEY).encrypt(nonce, content, _owner_data(owner_id))
    return PREFIX + _encode(nonce + sealed)


def unseal(owner_id: int, sealed: str) -> bytes:
    if not is_sealed(sealed):
        raise NotSealedHere
    raw = _decode(sealed.removeprefix(PREFIX))
    if len(raw) <= NONCE_BYTES:
        raise NotSealedHere
    nonce = raw[:NONCE_BYTES]
    content = raw[NONCE_BYTES:]
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            return _cipher(secret).decrypt(nonce, content, _owner_data(owner_id))
        except InvalidTag:
            continue
    raise NotSealedHere


def is_sealed(value: str) -> bool:
    """By its prefix alone: only ``unseal`` checks whether it is authentic."""
    return value.startswith(PREFIX)


def passing_cipher(salt: bytes) -> AESGCM:
    """For what a process sends to others. Each process has a salt of its own, and so a key."""
    return _passing_cipher(settings.SECRET_KEY, salt)


@lru_cache(maxsize=256)
def _passing_cipher(secret: str, salt: bytes) -> AESGCM:
    return _derived(secret, "passing content", salt)


@cache
def _cipher(secret: str) -> AESGCM:
    return _derived(secret, f"sealed content {PREFIX}", None)


def _derived(secret: str, purpose: str, salt: bytes | None) -> AESGCM:
    derivation = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=purpose.encode())
    return AESGCM(derivation.derive(secret.encode()))


def _owner_data(owner_id: int) -> bytes:
    """Authenticated with the content, so that another owner can't unseal it."""
    return f"owner {owner_id}".encode()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(text: str) -> bytes:
    """Empty unless ``_encode`` made this text: base64 has several spellings of the same bytes."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
    if _encode(raw) != text:
        return b""
    return raw
