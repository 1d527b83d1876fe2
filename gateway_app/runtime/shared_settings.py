"""Settings that processes on one database should share: any of them may continue a turn of another."""

import json

from django.conf import settings
from django.utils.crypto import salted_hmac

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.runtime.processes import is_dead_here, is_silent
from gateway_app.runtime.roles import Role

SHARED = (
    "HERMES_CONFIG",
    "HERMES_MODELS",
    "HERMES_LEASE_SECS",
    "HERMES_SWEEP_SECS",
    "HERMES_WORKSPACES",
)


def settings_digest() -> str:
    """Keyed, as some of them are secret: it shows nothing but whether two processes agree."""
    values = {name: getattr(settings, name) for name in SHARED}
    text = json.dumps(values, default=str, sort_keys=True)
    return salted_hmac("settings", text, algorithm="sha256").hexdigest()


def find_differing() -> list[RuntimeProcess]:
    """Live processes that run turns with other settings than these; older versions report none."""
    if settings.HERMES_DISPATCH == "none":
        return []
    others = RuntimeProcess.objects.filter(state=ProcessState.RUNNING).exclude(is_silent())
    others = others.exclude(settings_digest__in=["", settings_digest()]).exclude(role=Role.PAGES)
    return [process for process in others if not is_dead_here(process)]
