"""Which web pages may use this server: none but its own, unless an operator names their origins."""

from django.conf import settings

Headers = list[tuple[bytes, bytes]]

ANY = "*"
PREFLIGHT_HEADERS: Headers = [
    (b"access-control-allow-methods", b"GET, POST, PUT, PATCH, DELETE, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, Idempotency-Key, X-Hermes-Session-Id, X-Hermes-Session-Key, Last-Event-ID, "
        b"X-Hermes-Tool-Items, X-Hermes-Tool-Detail, X-Hermes-Turn-Policy, X-Request-Id",
    ),
    (b"access-control-max-age", b"600"),
]
# The OpenAI SDKs send a handful of headers about themselves from browsers too, and may invent more.
SDK_HEADER_PREFIX = "x-stainless-"
EXPOSED = (
    b"X-Hermes-Session-Id, X-Hermes-Session-Key, x-request-id, Idempotency-Replayed, X-Hermes-Ignored, "
    b"X-Hermes-Completed, X-Hermes-Partial, X-Hermes-Error, Retry-After, x-should-retry"
)


def is_listed(origin: str) -> bool:
    """By name, never by reflection; ``null`` is what sandboxed pages and local files all call themselves."""
    return origin != "null" and not {ANY, origin.lower()}.isdisjoint(
        settings.API_SERVER_CORS_ORIGINS
    )


def is_own(origin: str, host: str) -> bool:
    """A page of this server; the scheme is left out, for a proxy may have ended TLS, or changed the host as well."""
    return (
        origin.lower().partition("://")[2] == host.lower()
        or origin.lower() == settings.HERMES_PUBLIC_URL
    )


def cors_headers(origin: str | None) -> Headers:
    """For every answer, so that a cache never serves one page's permission to another."""
    if not settings.API_SERVER_CORS_ORIGINS:
        return []
    shared: Headers = [] if ANY in settings.API_SERVER_CORS_ORIGINS else [(b"vary", b"Origin")]
    if origin is None or not is_listed(origin):
        return shared
    allowed = b"*" if not shared else origin.encode("latin-1")
    return [
        *shared,
        (b"access-control-allow-origin", allowed),
        (b"access-control-expose-headers", EXPOSED),
    ]


def preflight_headers(requested: str) -> Headers:
    """What a page may send: our headers, and those of the SDKs it names in its question."""
    asked = [name.strip() for name in requested.lower().split(",")]
    of_sdks = [
        name
        for name in asked
        if name.startswith(SDK_HEADER_PREFIX) and name.replace("-", "").isalnum()
    ]
    methods, (name, ours), max_age = PREFLIGHT_HEADERS
    return [
        methods,
        (name, b", ".join([ours, *(sdk.encode() for sdk in of_sdks if sdk.isascii())])),
        max_age,
    ]
