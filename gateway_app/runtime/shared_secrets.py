"""Secrets that all processes on one database must share: sealed content and logins depend on them."""

import logging
from functools import partial

from django.conf import settings
from django.utils.crypto import salted_hmac

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.runtime.processes import is_dead_here, is_silent, retire
from gateway_app.runtime.signals import exit_now
from responses_app.database import database
from responses_app.services.lifecycle.claim import process_id

logger = logging.getLogger(__name__)


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


def disagreement(other: RuntimeProcess) -> str:
    return (
        f"{other} runs on the same database with other secrets. "
        "Give all processes the same HERMES_SECRET_KEY and API_SERVER_KEY."
    )


async def exit_if_disagreeing() -> None:
    """Of processes that start at the same moment, none knew the others before it was known itself."""
    other = await database.read(find_disagreeing)
    if other is not None:
        logger.critical(disagreement(other))
        await database.write(partial(retire, process_id()))
        exit_now(1)
