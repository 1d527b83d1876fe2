"""Who can reach the server, and which keys and host names are safe then."""

import ipaddress
from collections.abc import Collection

from django.core.exceptions import ImproperlyConfigured
from django.http.request import split_domain_port

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
MIN_KEY_CHARS = 16  # shorter keys can be guessed; generated ones have 43


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def http_url(host: str, port: int) -> str:
    """The address of a server that listens there; of IPv6 in brackets."""
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}"


def read_allowed_hosts(given: str, host: str, public_url: str) -> list[str]:
    """The host names that a request may use: the comma-separated list, and the public one."""
    allowed = [name for name in given.split(",") if name]
    if not allowed and is_loopback(host):
        allowed.extend(LOCAL_HOSTS)
    elif not allowed:
        allowed.append("*")
    if public_url:
        domain, _port = split_domain_port(public_url.partition("://")[2])
        allowed.append(domain)
    return allowed


def check_access(
    *,
    is_auth_off: bool,
    is_private: bool,
    address: str,
    key: str,
    allowed_hosts: Collection[str],
    cors_origins: Collection[str],
) -> None:
    """Cross-field validation: others need a strong key, and no web page acts without a key."""
    if is_auth_off and not is_private:
        raise ImproperlyConfigured(
            "HERMES_AUTH=off is only allowed when API_SERVER_HOST is a loopback address "
            "and HERMES_PUBLIC_URL is not set."
        )
    if not is_private and len(key) < MIN_KEY_CHARS:
        raise ImproperlyConfigured(
            f"API_SERVER_KEY must have at least {MIN_KEY_CHARS} characters when others can reach "
            f"{address}; leave it unset to have one generated."
        )
    if is_auth_off and "*" in allowed_hosts:
        raise ImproperlyConfigured(
            "API_SERVER_ALLOWED_HOSTS can't be * while HERMES_AUTH is off: any web page could act."
        )
    if is_auth_off and "*" in cors_origins:
        raise ImproperlyConfigured(
            "API_SERVER_CORS_ORIGINS can't be * while HERMES_AUTH is off: any web page could act."
        )
