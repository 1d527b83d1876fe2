"""What the fork server imports before it forks: libraries, and all of the applications.

``begin_anew`` then makes a forked process what it would be without these imports.
"""

import asyncio
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = [
    "anyio.streams.tls",
    "asgiref.server",
    "autobahn.twisted.websocket",
    "channels.generic.websocket",
    "channels.routing",
    "cryptography.hazmat.primitives.ciphers.aead",
    "daphne.utils",
    "dj_database_url",
    "django.contrib.admin",
    "django.contrib.admin.views.decorators",
    "django.contrib.auth.hashers",
    "django.contrib.auth.password_validation",
    "django.contrib.contenttypes.checks",
    "django.contrib.postgres.fields",
    "django.contrib.sessions.backends.base",
    "django.core.handlers.asgi",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.middleware.clickjacking",
    "django.middleware.common",
    "django.middleware.http",
    "django.middleware.security",
    "django.views.debug",
    "h11",
    "httpcore2",
    "json_repair",
    "jsonschema",
    "mcp",
    "openai",
    "orjson",
    "prometheus_client",
    "psycopg_pool",
    "rest_framework.serializers",
    "truststore",
    "twisted.cred.credentials",
    "twisted.internet.asyncioreactor",  # not the reactor: its descriptors would be shared
    "twisted.internet.endpoints",
    "twisted.web.http",
    "whitenoise.base",
    "yaml",
]
APPLICATIONS = ("gateway_app", "responses_app")
SETTINGS = ("hermes_site.settings", "tests.settings")


def preload() -> None:
    sys.modules["OpenSSL"] = None  # type: ignore[assignment]  # as manage.py has it
    for name in LIBRARIES:
        import_module(name)
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HERMES_HOME=home, DJANGO_SETTINGS_MODULE="tests.settings")
        import_module("django").setup()
        for application in APPLICATIONS:
            for path in sorted((ROOT / application).rglob("*.py")):
                parts = path.relative_to(ROOT).with_suffix("").parts
                import_module(".".join(parts).removesuffix(".__init__"))


def begin_anew() -> None:
    """Nothing of the settings under which this process was forked, nor of its reactor, stays."""
    from django import conf
    from django.apps import apps
    from django.core.cache import caches
    from django.db import connections
    from twisted.internet import reactor

    for name in SETTINGS:
        package, _, module = name.rpartition(".")
        delattr(sys.modules[package], module)
        del sys.modules[name]
    conf.settings._wrapped = conf.empty  # type: ignore[attr-defined]
    handlers: list[Any] = [connections, caches]
    for handler in handlers:
        handler.__dict__.pop("settings", None)
        handler.__init__()
    tempfile.tempdir = None
    apps.app_configs.clear()  # the models stay; each configuration is made and checked again
    apps.apps_ready = apps.models_ready = apps.loading = apps.ready = False
    # Its descriptors would be shared with all other processes that are forked here.
    reactor.__init__(asyncio.new_event_loop())  # type: ignore[misc]


preload()
