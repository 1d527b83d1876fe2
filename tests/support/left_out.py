"""What a run of the tests leaves out, and why: printed at its end."""

from collections import Counter
from typing import Any

import pytest

# A test with the marker runs once for each database; the variant with this word in its name is left out.
MARKERS = {
    "any_database": ("postgresql", "on PostgreSQL, as the database makes no difference to these tests"),
    "row_locks": ("sqlite", "on SQLite, which has no row locks to test"),
}
WORKER_KEY = "left_out"


class LeftOut:
    """A plugin of pytest. The workers of xdist collect the tests, and the process that prints does not."""

    def __init__(self) -> None:
        self._deselected: Counter[str] = Counter()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = []
        spared = []
        for item in items:
            reason = _reason_to_spare(item)
            if reason is None:
                kept.append(item)
            else:
                spared.append(item)
                self._deselected[reason] += 1
        config.hook.pytest_deselected(items=spared)
        items[:] = kept

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        worker_output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if worker_output is not None:
            worker_output[WORKER_KEY] = dict(self._deselected)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Each worker collects all tests, so one of them has the whole count. A worker that crashed has none."""
        worker_output = getattr(node, "workeroutput", {})
        self._deselected |= Counter(worker_output.get(WORKER_KEY, {}))

    @pytest.hookimpl(trylast=True)  # behind the slowest tests: it is the end that is read
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        skipped = Counter(_reason_to_skip(report) for report in terminalreporter.stats.get("skipped", []))
        if not skipped and not self._deselected:
            return
        terminalreporter.section("left out")
        for reason, count in skipped.most_common():
            terminalreporter.write_line(f"{count:>5} skipped: {reason}")
        for reason, count in self._deselected.most_common():
            terminalreporter.write_line(f"{count:>5} left out: {reason}")


def _reason_to_spare(item: pytest.Item) -> str | None:
    for marker, (variant, reason) in MARKERS.items():
        if item.get_closest_marker(marker) and variant in item.name:
            return reason
    return None


def _reason_to_skip(report: Any) -> str:
    """An expected failure (xfail) is reported as skipped too, with a reason of its own."""
    if isinstance(report.longrepr, tuple):
        _, _, reason = report.longrepr
        return str(reason).removeprefix("Skipped: ")
    return str(getattr(report, "wasxfail", report.longrepr))
