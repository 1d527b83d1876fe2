"""One control group for each command limits all of its processes together, and ends every one.

Version 2 is used where a folder with the controllers is delegated to the server, version 1 where its
folders can be written to. Groups that exist already, the server's own among them, keep their limits.
"""

import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gateway_app.config.terminal_limits import Limits
from gateway_app.tools.support.limits import DEFAULT_LIMITS, MIB

PREFIX = "hermes-command"
END_SECS = 5.0  # a process in an uninterruptible wait lives on for a while
POLL_SECS = 0.002
_CONTROLLERS = ("memory", "pids")


@dataclass(frozen=True, slots=True)
class Parents:
    """The folders for new groups: one in version 2, one for each controller in version 1."""

    version: int
    folders: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class ControlGroup:
    version: int
    folders: tuple[Path, ...]
    limits: Limits

    def make(self) -> None:
        memory, processes = str(self.limits.memory_mb * MIB), str(self.limits.processes)
        for folder in self.folders:
            folder.mkdir()
        if self.version == 2:
            _write(self.folders[0] / "memory.max", memory)
            _write(self.folders[0] / "pids.max", processes)
            _write_if_there(self.folders[0] / "memory.swap.max", "0")
            _write_if_there(self.folders[0] / "memory.oom.group", "1")
        else:
            _write(self.folders[0] / "memory.limit_in_bytes", memory)
            _write_if_there(self.folders[0] / "memory.memsw.limit_in_bytes", memory)
            _write(self.folders[1] / "pids.max", processes)

    def remove(self) -> None:
        """Ends every process in it first."""
        deadline = time.monotonic() + END_SECS
        for folder in self.folders:
            while not _is_removed(folder) and time.monotonic() < deadline:
                _end_all(folder)
                time.sleep(POLL_SECS)


def new_group(limits: Limits) -> ControlGroup | None:
    """Not made yet; None where the server can't make one."""
    parents = usable_parents()
    if parents is None:
        return None
    return _group_in(parents, limits)


@cache
def usable_parents() -> Parents | None:
    """Found out once, by making a group."""
    for parents in _candidates():
        group = _group_in(parents, DEFAULT_LIMITS)
        try:
            _enable_controllers(parents)
            group.make()
        except OSError:
            continue
        finally:
            group.remove()
        _remove_abandoned(parents)
        return parents
    return None


def _group_in(parents: Parents, limits: Limits) -> ControlGroup:
    name = f"{PREFIX}-{os.getpid()}-{secrets.token_hex(8)}"
    folders = tuple(folder / name for folder in parents.folders)
    return ControlGroup(parents.version, folders, limits)


def _candidates() -> Iterator[Parents]:
    own = _own_folders()
    if "" in own:
        # A group of version 2 with processes can't have groups with limits below it; its parent can.
        yield Parents(2, (own[""],))
        if not own[""].is_mount():
            yield Parents(2, (own[""].parent,))
    if all(name in own for name in _CONTROLLERS):
        yield Parents(1, tuple(own[name] for name in _CONTROLLERS))


def _own_folders() -> dict[str, Path]:
    """Where the server is, by controller; the empty name stands for version 2."""
    mounts = _mounts()
    found = {}
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if name in mounts:
                root, mount = mounts[name]
                found[name] = _own_folder(path, root, mount)
    return found


def _own_folder(path: str, root: str, mount: Path) -> Path:
    if not Path(path).is_relative_to(root):
        return mount
    folder = mount / Path(path).relative_to(root)
    if folder.is_dir() and ".." not in folder.parts:
        return folder
    return mount


def _mounts() -> dict[str, tuple[str, Path]]:
    """For each controller which part of the tree is mounted, and where."""
    found = {}
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup2":
            found[""] = (root, Path(mount))
        elif kind == "cgroup":
            for name in options.split(","):
                found[name] = (root, Path(mount))
    return found


def _enable_controllers(parents: Parents) -> None:
    if parents.version != 2:
        return
    control = parents.folders[0] / "cgroup.subtree_control"
    if not set(_CONTROLLERS) <= set(control.read_text().split()):
        _write(control, "+memory +pids")


def _remove_abandoned(parents: Parents) -> None:
    """Of servers that were killed: their commands died with them, the empty groups stay."""
    for parent in parents.folders:
        for folder in parent.glob(f"{PREFIX}-*"):
            owner = folder.name.split("-")[2]
            if not os.path.exists(f"/proc/{owner}"):
                _is_removed(folder)


def _is_removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # a process is in it
    return True


def _end_all(folder: Path) -> None:
    with suppress(OSError):
        if (folder / "cgroup.kill").exists():
            _write(folder / "cgroup.kill", "1")
            return
        for line in (folder / "cgroup.procs").read_text().split():
            pid = int(line)
            # 0 stands for a process that the server can't see; kill(0) would end its own group.
            if pid > 0:
                os.kill(pid, signal.SIGKILL)


def _write_if_there(file: Path, value: str) -> None:
    if file.exists():
        _write(file, value)


def _write(file: Path, value: str) -> None:
    file.write_text(value)
