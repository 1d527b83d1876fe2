"""Secrets that all processes on one database must share: sealed content and logins depend on them."""

from django.conf import settings
from django.utils.crypto import salted_hmac

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.runtime.processes import is_dead_here, is_silent


def secrets_digest() -> str:
    """Keyed by one of the secrets: it shows nothing but whether two processes agree."""
    return salted_hmac("cluster", settings.API_SERVER_KEY, algorithm="sha256").hexdigest()


def find_disagreeing() -> RuntimeProcess | None:
    """A live process with other secrets; one of an older version does not report its own."""
    others = RuntimeProcess.objects.filter(state=ProcessState.RUNNING)
    others = others.exclude(secrets_digest__in=["", secrets_digest()]).exclude(is_silent())
    for process in others:
        if not is_dead_here(process):
            return process
    return None
