"""Checks of /health/detailed that need no database: the channel layer, the model, the terminal."""

import time
from datetime import UTC, datetime
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings

from gateway_app.config.models import public_address
from gateway_app.operations.doctor.remote import IN_MEMORY, layer_round_trip
from gateway_app.providers.registry import silence_limits
from gateway_app.runtime.agents import Agent
from gateway_app.tools.terminal import NO_SANDBOX, NO_SANDBOX_REMEDY, lacks_sandbox
from responses_app.metrics import last_outcomes
from responses_app.services.profiles import DEFAULT

OK, DEGRADED = "ok", "degraded"
LAYER_SECS = 1.0
UPSTREAM_SECS = 300  # an older failure does not describe the present
UPSTREAM_CODES = ("server_error", "rate_limit_exceeded")  # others are the fault of the request


def check(is_ok: bool, **details: Any) -> dict[str, Any]:
    status = DEGRADED
    if is_ok:
        status = OK
    return {"status": status} | details


def layer_check() -> dict[str, Any]:
    backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
    if backend == IN_MEMORY:
        return check(True, backend=backend)
    try:
        async_to_sync(layer_round_trip)(LAYER_SECS)
    except Exception as error:  # whatever a backend raises, it is the finding
        return check(False, backend=backend, error=str(error) or type(error).__name__)
    return check(True, backend=backend)


def model_check() -> dict[str, Any]:
    """From its last answer: a request of its own would cost tokens, or count to a rate limit."""
    agent = Agent(settings.HERMES_PROFILES.get(DEFAULT))
    model = settings.HERMES_MODELS[0]
    window = agent.window(may_ask=False)
    last = last_outcomes.get((model["provider"], model["model"]))
    is_failing = (
        last is not None and last.code in UPSTREAM_CODES and time.time() - last.at < UPSTREAM_SECS
    )
    return check(
        not is_failing,
        provider=model["provider"],
        model=model["model"] or None,
        address=public_address(model) or None,
        asked_at=last and datetime.fromtimestamp(last.at, UTC).isoformat(),
        error=(last and last.code) or None,
        silence_limits=silence_limits(model),
        context_window={"tokens": window.tokens or None, "source": str(window.source)},
    )


def terminal_check() -> dict[str, Any]:
    mode = settings.HERMES_TERMINAL
    if lacks_sandbox(mode):
        return check(False, mode=mode, error=NO_SANDBOX, remedy=NO_SANDBOX_REMEDY)
    return check(True, mode=mode, error=None, remedy=None)
