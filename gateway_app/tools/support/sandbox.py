"""A view of the machine with the system's programs and one workspace, of which only the latter can be written to.

It is bubblewrap's work; a bubblewrap that can't make namespaces here counts as not installed. The limits are set
before it starts, so that nothing inside can raise them.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from gateway_app.config.terminal_limits import Limits
from gateway_app.tools.support import cgroups, limits, seccomp
from gateway_app.tools.support.limits import DEFAULT_LIMITS, MIB, SHARED_MEMORY_MB
from gateway_app.tools.support.private_files import PrivateFiles

PROBE_SECS = 20  # a machine that is busy while the server starts must not lose its terminal
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SHOWN = (Path("/usr"), Path("/etc"), *(Path(name) for name in _SYSTEM))
_PRIVATE_SETTINGS = PrivateFiles(Path("/etc"))


@cache
def bubblewrap() -> str | None:
    """The program, if it works: it is run once with the very options that commands get."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Sandbox(program, Path(folder).resolve(), DEFAULT_LIMITS) as sandbox:
                done = subprocess.run(  # noqa: S603 - every word of it is ours
                    [*sandbox.argv(), "/bin/bash", "-c", "exit 42"],
                    pass_fds=sandbox.descriptors,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    env={},
                    timeout=PROBE_SECS,
                )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
    return program if done.returncode == 42 else None


class Sandbox:
    """For one command: what comes before it, and the descriptors that this needs."""

    def __init__(
        self,
        program: str,
        workspace: Path,
        limits: Limits,
        group: cgroups.ControlGroup | None = None,
    ) -> None:
        self.program = program
        self.workspace = workspace
        self.limits = limits
        self.group = group
        self._filter = seccomp.filter_file()
        self._server, self._kept_open = os.pipe()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Those that the program inherits."""
        return (self._server,) if self._filter is None else (self._server, self._filter)

    def argv(self) -> tuple[str, ...]:
        groups = () if self.group is None else tuple(str(folder) for folder in self.group.folders)
        filtered = () if self._filter is None else ("--seccomp", str(self._filter))
        return (
            *limits.limited(self.limits, groups),
            *wrapped(self.program, self.workspace, self.limits),
            *filtered,
            *limits.entry(self.limits, self._server),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for descriptor in (self._kept_open, *self.descriptors):
            os.close(descriptor)


def wrapped(program: str, workspace: Path, limits: Limits) -> tuple[str, ...]:
    """Bubblewrap with its options: the view of the machine, without any limit but those of the memory file systems."""
    for folder in _SHOWN:
        if workspace.is_relative_to(folder):
            raise ValueError(
                f"the workspace lies in {folder}, where the sandbox can't hide what is beside it"
            )
    network = ("--share-net", *_resolver()) if limits.has_network else ()
    return (
        *(
            program,
            "--unshare-all",
            "--unshare-user",
            "--disable-userns",
            "--die-with-parent",
            "--new-session",
        ),
        *("--cap-drop", "ALL"),  # a server that runs as root would pass all of them on
        *("--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"),
        *_system_folders(),
        *_PRIVATE_SETTINGS.options(),
        *network,
        *("--dev", "/dev", *_memory_folder("/dev/shm", SHARED_MEMORY_MB)),  # noqa: S108
        *_memory_folder("/tmp", limits.temporary_mb),  # noqa: S108
        *("--proc", "/proc"),
        *(
            "--remount-ro",
            "/proc",
        ),  # root could set the machine's sysctls even without capabilities
        *("--bind", str(workspace), str(workspace), "--chdir", str(workspace)),
        # Both are file systems in memory, without a limit of their size.
        *("--remount-ro", "/dev", "--remount-ro", "/"),
    )


def _memory_folder(path: str, size_mb: int) -> tuple[str, ...]:
    return ("--perms", "1777", "--size", str(size_mb * MIB), "--tmpfs", path)


def _system_folders() -> Iterator[str]:
    for name in _SYSTEM:
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        elif os.path.isdir(name):
            yield from ("--ro-bind", name, name)


def _resolver() -> Iterator[str]:
    """Names must resolve where the file that says how is a link to elsewhere."""
    real = os.path.realpath("/etc/resolv.conf")
    if not real.startswith("/etc/"):
        yield from ("--ro-bind-try", real, real)
