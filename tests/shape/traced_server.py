"""``manage.py serve`` of the tree in the working directory, with each call between its modules noted.

Run by its path, with the file that takes the counts. It imports nothing of its own tree: the tree that is measured
may be another one. SIGUSR1 writes the counts since the last SIGUSR1 and starts again from zero.
"""

import json
import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

PACKAGES = ("responses_app", "gateway_app", "hermes_site")
EVENT_LOOP = f"{os.sep}asyncio{os.sep}events.py"  # the frames above it did not make the call
Call = tuple[str | None, str]


class Tracer:
    """Notes which module of ours calls which; a generator or coroutine that goes on is called again."""

    def __init__(self, tree: Path) -> None:
        self._roots = {f"{tree / package}{os.sep}" for package in PACKAGES}
        self._tree = tree
        self._modules: dict[CodeType, str | None] = {}
        self._calls: list[Call] = []

    def start(self) -> None:
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call":
            return
        callee = self._module(frame.f_code)
        if callee is not None:
            # Appending is atomic; a counter would lose calls between threads.
            self._calls.append((self._caller(frame), callee))

    def take(self) -> list[Call]:
        taken = self._calls
        self._calls = []
        return taken

    def _caller(self, frame: FrameType) -> str | None:
        """The nearest module of ours above, through libraries, but not through the event loop."""
        above = frame.f_back
        while above is not None:
            if above.f_code.co_filename.endswith(EVENT_LOOP):
                return None
            module = self._module(above.f_code)
            if module is not None:
                return module
            above = above.f_back
        return None

    def _module(self, code: CodeType) -> str | None:
        if code not in self._modules:
            self._modules[code] = self._named(code.co_filename)
        return self._modules[code]

    def _named(self, filename: str) -> str | None:
        for root in self._roots:
            if filename.startswith(root):
                path = Path(filename).relative_to(self._tree)
                return str(path.with_suffix("")).replace(os.sep, ".")
        return None


def package(module: str) -> str:
    """The folder of a module, of at most two names: responses_app.eventlog, or responses_app for its top modules."""
    folders = module.split(".")[:-1]
    return ".".join(folders[:2])


def summarise(calls: list[Call]) -> dict[str, Any]:
    hops: Counter[tuple[str, str]] = Counter()
    switches = 0
    modules = set()
    for caller, callee in calls:
        modules.add(callee)
        if caller is not None and caller != callee:
            hops[caller, callee] += 1
            if package(caller) != package(callee):
                switches += 1
    pairs = [[caller, callee, count] for (caller, callee), count in hops.most_common()]
    return {"hops": hops.total(), "modules": sorted(modules), "switches": switches, "pairs": pairs}


def main() -> None:
    counts_path = Path(sys.argv[1])
    tree = Path.cwd()
    tracer = Tracer(tree)

    def write_counts(number: int, frame: FrameType | None) -> None:
        partial = counts_path.with_suffix(".partial")
        partial.write_text(json.dumps(summarise(tracer.take())))
        partial.rename(counts_path)

    signal.signal(signal.SIGUSR1, write_counts)
    sys.path[0] = str(tree)
    os.environ["DJANGO_SETTINGS_MODULE"] = "hermes_site.settings"
    tracer.start()
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", "serve"])


if __name__ == "__main__":
    main()
