"""Which web pages may use this server: none but its own, unless an operator names their origins."""

from django.conf import settings

Headers = list[tuple[bytes, bytes]]

ANY = "*"
ALLOWED_METHODS = b"GET, POST, PUT, PATCH, DELETE, OPTIONS"
ALLOWED_HEADERS = (
    b"Authorization, Content-Type, Idempotency-Key, X-Hermes-Session-Id, X-Hermes-Session-Key, "
    b"Last-Event-ID, X-Hermes-Reasoning, X-Hermes-Tool-Items, X-Hermes-Tool-Detail, "
    b"X-Hermes-Client-Tools, X-Hermes-Approval-Wait, X-Hermes-On-Disconnect, "
    b"X-Hermes-Turn-Policy, X-Request-Id"
)
MAX_AGE_SECS = 600
# The OpenAI SDKs send headers about themselves from browsers too; newer versions may add more.
SDK_HEADER_PREFIX = "x-stainless-"
EXPOSED_HEADERS = (
    b"X-Hermes-Session-Id, X-Hermes-Session-Key, x-request-id, Idempotency-Replayed, "
    b"X-Hermes-Ignored, X-Hermes-Usage, X-Hermes-Completed, X-Hermes-Partial, X-Hermes-Error, Retry-After, "
    b"x-should-retry"
)


def is_listed(origin: str) -> bool:
    """Only by name; ``null`` is the origin of every sandboxed page and every local file."""
    if origin == "null":
        return False
    listed = settings.API_SERVER_CORS_ORIGINS
    return ANY in listed or origin.lower() in listed


def is_own(origin: str, host: str) -> bool:
    """Whether this server sent the page; a proxy may have changed the scheme, or the host too."""
    own_host = origin.lower().partition("://")[2] == host.lower()
    return own_host or origin.lower() == settings.HERMES_PUBLIC_URL


def cors_headers(origin: str | None) -> Headers:
    """On every response, so that a cache never serves one page's permission to another."""
    listed = settings.API_SERVER_CORS_ORIGINS
    if not listed:
        return []
    headers: Headers = []
    if ANY not in listed:
        headers.append((b"vary", b"Origin"))
    if origin is not None and is_listed(origin):
        allowed = b"*" if ANY in listed else origin.encode("latin-1")
        headers.append((b"access-control-allow-origin", allowed))
        headers.append((b"access-control-expose-headers", EXPOSED_HEADERS))
    return headers


def preflight_headers(requested: str) -> Headers:
    """A page may send our headers, and those of the SDKs that its preflight names."""
    allowed = [ALLOWED_HEADERS]
    for entry in requested.lower().split(","):
        name = entry.strip()
        is_of_sdk = name.startswith(SDK_HEADER_PREFIX) and name.replace("-", "").isalnum()
        if is_of_sdk and name.isascii():
            allowed.append(name.encode())
    return [
        (b"access-control-allow-methods", ALLOWED_METHODS),
        (b"access-control-allow-headers", b", ".join(allowed)),
        (b"access-control-max-age", b"%d" % MAX_AGE_SECS),
    ]
