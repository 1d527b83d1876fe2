"""The product's settings, with a model that tests can script."""

import os
import tempfile

os.environ.setdefault("HERMES_HOME", tempfile.mkdtemp(prefix="hermes-tests-"))
os.environ.setdefault("HERMES_PROVIDER", "builtin")

from hermes_site import settings as product
from hermes_site.settings import *  # noqa: F403

HERMES_PROVIDERS = product.HERMES_PROVIDERS | {"builtin": "tests.scripted.ScriptedProvider"}
HERMES_DISPATCHER = os.environ.get("TEST_DISPATCHER", product.HERMES_DISPATCHER)
DATABASES = product.DATABASES
if product.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": product.HERMES_HOME / "test.sqlite3"}
