import sys
from importlib import import_module
from typing import Any

from django.apps import AppConfig

# REST framework imports these where they are installed; nothing here needs them there.
UNUSED = ("django.contrib.postgres.fields", "requests", "pygments")


class ResponsesAppConfig(AppConfig):
    name = "responses_app"
    verbose_name = "Responses"


def import_rest_framework() -> None:
    """Without what it would import and not use, psycopg for one: 15 MB in every process."""
    modules: dict[str, Any] = sys.modules
    hidden = [name for name in UNUSED if name not in modules]
    for name in hidden:
        modules[name] = None
    try:
        import_module("rest_framework.compat")
    finally:
        for name in hidden:
            del modules[name]


import_rest_framework()
