"""The same application under other ASGI servers."""

from tests.support.server import Server

ENSURE_ADMIN = "from gateway_app.operations.first_start import ensure_admin; ensure_admin()"


class Uvicorn(Server):
    command = ("-m", "uvicorn", "hermes_site.asgi:application", "--port", "{port}", "--log-level", "warning")


class PlainDaphne(Server):
    command = ("-m", "daphne", "-p", "{port}", "hermes_site.asgi:application")
