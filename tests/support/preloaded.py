"""What the fork server imports before it forks: libraries, and packages that are plain Python.

None of it may read the settings, which every process makes from its own environment.
"""

import os
from importlib import import_module
from pathlib import Path

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
PLAIN_PACKAGES = [
    "gateway_app/agent",
    "gateway_app/config",
    "gateway_app/documents",
    "gateway_app/providers",
    "gateway_app/tools",
    "responses_app/protocol",
]


def preload() -> None:
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)  # a module that reads a setting fails
    for name in LIBRARIES:
        import_module(name)
    for package in PLAIN_PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            import_module(".".join(parts).removesuffix(".__init__"))


preload()
