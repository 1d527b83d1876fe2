"""``doctor --model``: tries a model with one call of each kind, and recommends its settings."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, replace
from typing import Any

import yaml

from gateway_app.agent.events import ModelFailed
from gateway_app.config.models import Model
from gateway_app.config.presets.registry import PRESETS
from gateway_app.operations.doctor.model_trials import TRIALS, Finding, Subject, Trial
from gateway_app.providers.model_server import Report
from gateway_app.providers.registry import get_providers
from gateway_app.runtime.agents import Agent, agent_of
from responses_app.services.profiles import default_model, is_default, profile_names


class UnknownProfile(Exception):
    """No profile has this name; the message lists those that exist."""


@dataclass(frozen=True)
class Candidate:
    """The model to try, and what its profile knows of it."""

    model: Model
    window: int
    profile: str = ""  # empty: the default agent


def find_candidate(profile: str) -> Candidate:
    """The first model of a profile; of the default agent where the name is empty."""
    name = profile or default_model()
    names = profile_names()
    if not is_default(name) and name not in names:
        known = ", ".join((default_model(), *names))
        raise UnknownProfile(f"There is no profile {name!r}. The profiles are: {known}.")
    agent: Agent = agent_of(name)
    if is_default(name):
        name = ""
    return Candidate(agent.models()[0], agent.window().tokens, name)


async def try_model(
    candidate: Candidate, report: Report, limit_secs: float, announce: Callable[[str], None]
) -> AsyncGenerator[tuple[str, Finding]]:
    """The findings in the order of TRIALS, within the limit; without text nothing else is tried."""
    [provider] = get_providers((candidate.model,))
    subject = Subject(
        provider,
        PRESETS[candidate.model["provider"]],
        candidate.model["model"],
        candidate.window or report.window,
    )
    deadline = time.monotonic() + limit_secs
    try:
        for name, trial in TRIALS.items():
            announce(name)
            finding = await _limited(trial, subject, deadline)
            yield name, _with_option_advice(finding, candidate.model["options"])
            if name == "text" and not finding.works:
                return
    finally:
        close: Any = getattr(provider, "aclose", None)
        if close is not None:
            await close()


async def _limited(trial: Trial, subject: Subject, deadline: float) -> Finding:
    """Half of the time that is left: one call that hangs must not cost all others theirs."""
    is_first = trial is TRIALS["text"]
    limit_secs = (deadline - time.monotonic()) / 2
    try:
        async with asyncio.timeout(limit_secs):
            return await trial(subject)
    except TimeoutError:
        advice = "Try again with a higher --limit, or look at the model's server."
        return Finding(False, f"no answer within {limit_secs:.0f} s", advice, is_fatal=is_first)
    except ModelFailed as failure:
        return Finding(False, failure.message, _advice(failure, is_first), is_fatal=is_first)


def _advice(failure: ModelFailed, is_first: bool) -> str:
    if is_first:
        return "Check HERMES_BASE_URL, HERMES_API_KEY and HERMES_MODEL; run doctor without --model."
    return "Requests of this kind fail with this model."


def _with_option_advice(finding: Finding, options: dict[str, Any]) -> Finding:
    """A server that refuses a field names it in its message, and is then asked without it."""
    fields = [name for name in options if name not in ("extra_body", "extra_headers", "query")]
    fields += options.get("extra_body", {})
    for name in fields:
        is_refused = not finding.works and name in finding.text
        if is_refused or f"no {name}" in finding.text:
            return replace(finding, advice=f"Remove the option {name}: the server refuses it.")
    return finding


def recommended_lines(candidate: Candidate, report: Report) -> list[str]:
    """Lines of config.yaml that differ from what is set; empty where nothing is better known."""
    better: dict[str, Any] = {}
    if report.preset and candidate.model["provider"] == "custom":
        better["provider"] = report.preset
    is_too_large = candidate.window > report.window
    if report.window and (is_too_large or not candidate.window):
        better["context_length"] = report.window
    if not better:
        return []
    section: dict[str, Any] = {"model": better}
    if candidate.profile:
        section = {"profiles": {candidate.profile: better}}
    return yaml.safe_dump(section, sort_keys=False).splitlines()
