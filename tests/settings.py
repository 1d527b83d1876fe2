"""The product's settings, with a model that tests can script."""

import os
import tempfile

if "HERMES_HOME" not in os.environ:
    home = tempfile.TemporaryDirectory(prefix="hermes-tests-")  # gone with this process
    os.environ["HERMES_HOME"] = home.name
os.environ.setdefault("HERMES_PROVIDER", "builtin")
os.environ.setdefault("HERMES_CORE_PROMPT", "off")  # most tests are about what clients and profiles send

from django.conf import global_settings

from gateway_app.config.platforms import PlatformConfig
from hermes_site import settings as product
from hermes_site.settings import *  # noqa: F403

HERMES_PROVIDERS = product.HERMES_PROVIDERS | {"builtin": "tests.support.scripted_provider.ScriptedProvider"}
HERMES_TOOL_MAKERS = [*product.HERMES_TOOL_MAKERS, "tests.support.scripted_tools.make_tools"]
HERMES_DISPATCHER = os.environ.get("TEST_DISPATCHER", product.HERMES_DISPATCHER)
ASGI_APPLICATION = os.environ.get("TEST_ASGI_APPLICATION", product.ASGI_APPLICATION)
HERMES_PROBES_MODELS = "TEST_MODEL_PROBE" in os.environ  # model stubs count their requests
HERMES_SOCKET_SECS = float(os.environ.get("TEST_SOCKET_SECS", product.HERMES_SOCKET_SECS))
HERMES_IDLE_SECS = float(os.environ.get("TEST_IDLE_SECS", product.HERMES_IDLE_SECS))
HERMES_HEAD_SECS = float(os.environ.get("TEST_HEAD_SECS", product.HERMES_HEAD_SECS))
HERMES_BODY_SECS = float(os.environ.get("TEST_BODY_SECS", product.HERMES_BODY_SECS))
HERMES_UNAUTHENTICATED_BYTES = int(os.environ.get("TEST_UNAUTHENTICATED_BYTES", product.HERMES_UNAUTHENTICATED_BYTES))
HERMES_POLL_SECS = float(os.environ.get("TEST_POLL_SECS", product.HERMES_POLL_SECS))
HERMES_PLATFORM_ADAPTERS = product.HERMES_PLATFORM_ADAPTERS | {"fake": "tests.support.gated_platform.GatedPlatform"}
# Tests exchange many messages between processes.
# Ten polls a second cost an idle server 7 % of a processor.
HERMES_PLATFORM_POLL_SECS = float(os.environ.get("TEST_PLATFORM_POLL_SECS", "0.1"))
HERMES_BRIDGE_REPLY_SECS = float(os.environ.get("TEST_BRIDGE_REPLY_SECS", product.HERMES_BRIDGE_REPLY_SECS))
HERMES_SENDING_SECS = float(os.environ.get("TEST_SENDING_SECS", product.HERMES_SENDING_SECS))
if "TEST_FAKE_PLATFORM" in os.environ:
    HERMES_PLATFORMS = {"fake": PlatformConfig("fake", allowed_senders=frozenset("*"))}
DATABASES = product.DATABASES
if product.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["ENGINE"] = os.environ.get("TEST_SQLITE_ENGINE", product.DATABASES["default"]["ENGINE"])
    DATABASES["default"]["TEST"] = {"NAME": product.HERMES_HOME / "test.sqlite3"}
    # A process that is killed loses nothing by this; it is the machine that may not crash.
    DATABASES["default"]["OPTIONS"]["init_command"] += "; PRAGMA synchronous=OFF"
    if "TEST_SQLITE_BUSY_SECS" in os.environ:
        busy_ms = 1000 * int(os.environ["TEST_SQLITE_BUSY_SECS"])
        DATABASES["default"]["OPTIONS"]["init_command"] += f"; PRAGMA busy_timeout={busy_ms}"
elif "TEST_DATABASE_TEMPLATE" in os.environ:
    DATABASES["default"]["TEST"] = {"TEMPLATE": os.environ["TEST_DATABASE_TEMPLATE"]}  # migrated already
# A fresh home makes an admin login; a real hash for each of hundreds would take minutes.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *global_settings.PASSWORD_HASHERS]
if "TEST_LOG_LEVEL" in os.environ:
    for name in ("gateway_app", "responses_app"):
        product.LOGGING["loggers"][name]["level"] = os.environ["TEST_LOG_LEVEL"]
