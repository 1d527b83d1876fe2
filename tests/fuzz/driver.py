"""Requests that Schemathesis makes from ``/openapi.json``, sent to a real server.

Each operation gets requests that the document calls valid, and requests that it calls invalid. The
server answers as described, refuses what is invalid, and takes what is valid unless the reason lies
outside the document: in what is stored, or in how two fields go together.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import seed as seeded
from hypothesis import settings as examples
from schemathesis import Case, GenerationMode
from schemathesis.checks import CheckContext
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi import checks

from tests.fuzz.resources import Resources
from tests.support.server import Server

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]
AnyCase: TypeAlias = Case[Any]
REQUEST_SECS = 60
MAX_CHARS = 500  # of a finding
GENERATION = {
    # No text of a request may hold NUL; a pattern on every one would hide the rest.
    "allow-x00": False,
    # The key is the same in every request.
    "with-security-parameters": False,
}
# Hypothesis finds the words that ask for it in the source.
ON_DEMAND = "The built-in model was asked to fail."
# Params of refusals that the document can't foresee: what is stored, and how fields go together.
UNFORESEEN = (
    *("after", "last_seq", "before", "starting_after", "Last-Event-ID", "Idempotency-Key", "title"),
    *("encrypted_content", "call_id", "tool_call_id", "id", "session_id", "X-Hermes-Session-Id"),
    *("offset", "tool_choice", "server_label", "read_only", "messages", "input", "max_tokens"),
    *("background", "previous_response_id", "conversation"),
    "name",  # of a conversation: printable; of a tool: once
    "tool_choice.type",  # of a tool that the request has
)


@dataclass(frozen=True)
class Finding:
    operation: str
    check: str
    problem: str
    request: str
    answer: str

    def __str__(self) -> str:
        lines = (f"{self.operation}: {self.check}", self.request, f"-> {self.answer}", self.problem)
        return "\n  ".join(lines)


@dataclass
class Report:
    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Plan:
    """One operation, with one sort of requests."""

    operation: Operation
    mode: GenerationMode
    has_known_ids: bool

    @property
    def width(self) -> int:
        """How much there is to vary: the narrow ones go first and leave their share to others."""
        has_body = len(self.operation.body) > 0
        return 100 * has_body + len(self.operation.query) + len(self.operation.headers)


class Fuzz:
    def __init__(self, server: Server, seed: int, only: str = "") -> None:
        self.report = Report()
        self._seed = seed
        self._only = only
        self._url = server.url
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {server.key}"
        self._resources = Resources(self._session, server.url)
        config = SchemathesisConfig.from_dict({"generation": GENERATION})
        self._schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json", config=config)

    def run(self, cases: int, note: Callable[[str], None] = lambda _: None) -> Report:
        plans = sorted(self._plans(), key=lambda plan: plan.width)
        for index, plan in enumerate(plans):
            share = (cases - self.report.cases) // (len(plans) - index)
            known = len(self.report.findings)
            self._try(plan, share)
            for finding in self.report.findings[known:]:
                note(str(finding))
            found = len(self.report.findings)
            note(f"{self.report.cases} cases, {found} findings: {plan.operation.label}")
        self._session.close()
        return self.report

    def _plans(self) -> Iterator[Plan]:
        for found in self._schema.get_all_operations():
            assert isinstance(found, Ok), found
            operation = found.ok()
            if self._only not in operation.label:
                continue
            yield Plan(operation, GenerationMode.POSITIVE, has_known_ids=True)
            yield Plan(operation, GenerationMode.NEGATIVE, has_known_ids=True)
            if "{" in operation.path:
                yield Plan(operation, GenerationMode.POSITIVE, has_known_ids=False)

    def _try(self, plan: Plan, share: int) -> None:
        if share == 0:
            return
        chosen: dict[str, Any] = {}
        if plan.has_known_ids and "{" in plan.operation.path:
            chosen["path_parameters"] = self._resources.ids(plan.operation.path)
        strategy = plan.operation.as_strategy(generation_mode=plan.mode, **chosen)
        options = examples(
            max_examples=share,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )

        @seeded(self._seed)
        @options
        @given(strategy)
        def send(case: AnyCase) -> None:
            self._send(case)

        send()

    def _send(self, case: AnyCase) -> None:
        response = case.call(base_url=self._url, session=self._session, timeout=REQUEST_SECS)
        self.report.cases += 1
        self.report.statuses[response.status_code] += 1
        try:
            case.validate_response(response, checks=list(CHECKS))
        except FailureGroup as failed:
            for problem in failed.exceptions:
                self.report.findings.append(_finding(case, response, problem))


def _finding(case: AnyCase, response: Response, problem: Exception) -> Finding:
    return Finding(
        operation=case.operation.label,
        check=getattr(problem, "title", type(problem).__name__),
        problem=str(problem)[:MAX_CHARS],
        request=case.as_curl_command()[: 4 * MAX_CHARS],
        answer=f"{response.status_code} {response.text[:MAX_CHARS]}",
    )


# -- checks of our own ------------------------------------------------------------------
def no_server_error(ctx: CheckContext, response: Response, case: AnyCase) -> None:
    assert response.status_code < 500 or ON_DEMAND in response.text, "The server failed"


def valid_is_taken(ctx: CheckContext, response: Response, case: AnyCase) -> None:
    assert case.meta is not None
    if response.status_code != 400 or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return
    error = response.json()["error"]
    path = re.sub(r"\[\d+\]", "", str(error["param"]))
    field = path.rsplit(".", 1)[-1]
    is_unforeseen = field in UNFORESEEN or path in UNFORESEEN
    assert is_unforeseen, f"The document calls it valid, but: {error['message']}"


CHECKS = (
    no_server_error,
    valid_is_taken,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
)
