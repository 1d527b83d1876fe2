"""A profile of one scenario, taken from outside by py-spy: stacks of the whole process, and a list of functions."""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from bench.clocks import cores
from bench.targets import ROOT, pinned

FOLDER = ROOT / "var" / "profiles"
SAMPLES_PER_SEC = 200
SHOWN = 30


class Recording:
    """py-spy beside a process, until it is stopped."""

    def __init__(self, pid: int, path: Path, *, only_gil: bool = False) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        program = Path(sys.executable).parent / "py-spy"
        command = [str(program), "record", "--pid", str(pid), "--rate", str(SAMPLES_PER_SEC), "--threads"]
        command += ["--format", "raw", "--duration", "unlimited", "--nonblocking", "--output", str(path)]
        if only_gil:
            command.append("--gil")
        command = pinned(cores()[1], command)
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1.0)  # py-spy reads the symbols of the process first
        if self._process.poll() is not None:
            assert self._process.stderr is not None
            raise SystemExit(f"py-spy could not look at the server:\n{self._process.stderr.read()}")

    def stop(self) -> None:
        self._process.send_signal(2)  # it writes its file at an interruption
        self._process.communicate(timeout=60)


def top_list(stacks: str) -> str:
    """Functions by the samples in which they run themselves, and in which they are on the stack."""
    own: Counter[str] = Counter()
    total: Counter[str] = Counter()
    samples = 0
    for line in stacks.splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [_function(frame) for frame in stack.split(";") if not frame.startswith("thread (")]
        if not frames:
            continue
        own[frames[-1]] += int(count)
        for name in set(frames):
            total[name] += int(count)
        samples += int(count)
    lines = [f"{samples} samples, {SAMPLES_PER_SEC} per second and thread that is not idle"]
    for title, counted in (("own time", own), ("with what it calls", total)):
        lines.append(f"\n{title}")
        for name, found in counted.most_common(SHOWN):
            lines.append(f"{found / max(1, samples):7.1%}  {name}")
    return "\n".join(lines)


def _function(frame: str) -> str:
    """``name (path/file.py:123)`` without the line: lines of one function count together."""
    name, _, location = frame.partition(" (")
    file = location.rstrip(")").rpartition(":")[0]
    short = "/".join(file.split("/")[-3:])
    return f"{name} ({short})" if short else name
