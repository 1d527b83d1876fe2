"""Channel layers: in memory for one process, on Redis for several."""

import hashlib
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.environment import Env

IN_MEMORY = {"BACKEND": "channels.layers.InMemoryChannelLayer"}
SCHEMES = ("redis", "rediss", "unix")
DISPATCH_MODES = ("inprocess", "workers", "none")
CONNECT_SECS = 2
# Of Redis to a hint that is sent; a later one is lost, and the poll finds the events.
ANSWER_SECS = 2
QUEUE_SECS = 15  # longer than the five seconds for which a worker waits at the queue
QUEUE_LENGTH = 1_000  # turns that wait for a free slot; the sweeps of the workers find the others

Layers = dict[str, dict[str, Any]]


def check_redis_url(url: str) -> str:
    """The URL as it is, or empty; never quoted in an error, as it may hold a password."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        port_or_path = parts.port or parts.path
    except ValueError:
        raise _not_understood("its port is no number from 0 to 65535") from None
    if parts.scheme not in SCHEMES:
        raise _not_understood(f"it must begin with one of {', '.join(SCHEMES)}, then ://")
    if parts.scheme == "unix" and not port_or_path:
        raise _not_understood("the path of the socket is missing")
    if parts.scheme == "unix":
        return url
    if not parts.hostname:
        raise _not_understood("the host is missing")
    number = parts.path.strip("/")
    if number and not number.isdecimal():
        raise _not_understood("the database after the host must be a number")
    return url


def channel_layers(url: str, secret: str) -> Layers:
    """``default`` carries hints to all processes, ``queue`` turns to the next free worker.

    Two installations can share a Redis server: the prefix follows from their secrets.
    """
    if not url:
        return {"default": IN_MEMORY, "local": IN_MEMORY}
    prefix = "hermes-" + hashlib.sha256(b"layers" + secret.encode()).hexdigest()[:12]
    answering = {
        "address": url,
        "socket_connect_timeout": CONNECT_SECS,
        "socket_timeout": ANSWER_SECS,
    }
    hints = {"hosts": [answering], "prefix": prefix}
    waiting = answering | {"socket_timeout": QUEUE_SECS}
    queue = {"hosts": [waiting], "prefix": prefix, "capacity": QUEUE_LENGTH}
    return {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": hints},
        "queue": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": queue},
        "local": IN_MEMORY,
    }


def read_dispatch(env: Env, redis_url: str) -> str:
    """Where turns run: in web processes, in workers, or elsewhere."""
    default = "inprocess"
    if redis_url:
        default = "workers"
    dispatch = env.choice("HERMES_DISPATCH", default, DISPATCH_MODES)
    if dispatch == "workers" and not redis_url:
        raise ImproperlyConfigured(
            "HERMES_DISPATCH=workers needs REDIS_URL: without it, workers get no hints."
        )
    return dispatch


def dispatcher_name(dispatch: str, redis_url: str) -> str:
    if dispatch == "none":
        return "gateway_app.runtime.cluster_dispatch.PagesDispatcher"
    if redis_url:
        return "gateway_app.runtime.cluster_dispatch.ClusterDispatcher"
    return "gateway_app.runtime.dispatch.InProcessDispatcher"


def _not_understood(reason: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"REDIS_URL cannot be understood: {reason}.")
