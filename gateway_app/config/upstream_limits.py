"""How long a model's server may be silent: a server of one's own may take its time."""

import ipaddress
from functools import lru_cache
from urllib.parse import urlsplit

# A small machine reads a long prompt for minutes, and some servers send a call only when it is
# complete. TCP keepalive notices a machine that is gone.
NEARBY_SECS = 1800.0
PUBLIC_READ_SECS = 60.0
PUBLIC_STALE_SECS = 180.0
MAX_ADDRESSES = 256  # of servers; each request asks about those of its models
# None of these exists in the public DNS. `host.docker.internal` and Kubernetes' names are among
# them.
_NEARBY_DOMAINS = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".svc")


@lru_cache(MAX_ADDRESSES)
def is_nearby(url: str) -> bool:
    """Is the server on this machine or in a private network, by the looks of its address?

    No name is resolved. A name without a dot is that of a container or of a machine nearby.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    address = _ip_address(host)
    if address is not None:
        return not address.is_global
    return "." not in host or host.endswith(_NEARBY_DOMAINS)


def _ip_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def read_limit_secs(url: str, configured: float | None) -> float:
    """Without a byte, after the first one."""
    return _limit_secs(url, configured, PUBLIC_READ_SECS)


def stale_limit_secs(url: str, configured: float | None) -> float:
    """Without an event, counted from the request."""
    return _limit_secs(url, configured, PUBLIC_STALE_SECS)


def _limit_secs(url: str, configured: float | None, public_secs: float) -> float:
    if configured is not None:
        return configured
    if is_nearby(url):
        return NEARBY_SECS
    return public_secs
