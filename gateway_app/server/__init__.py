"""Daphne with what this project needs around it; nothing durable depends on it."""

from gateway_app.server.daphne_server import GatewayServer, endpoint

__all__ = ["GatewayServer", "endpoint"]
