"""A sandbox with the system's programs and one workspace, of which only the workspace can be written to.

Bubblewrap makes it; a bubblewrap that can't make namespaces here counts as not installed. The limits
are set before it starts, so that nothing inside can raise them.
"""

import os
import shutil
import subprocess
import tempfile
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
_VISIBLE = ("/usr", "/etc", *_SYSTEM)
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
                argv = (*sandbox.argv(), "/bin/bash", "-c", "exit 42")
                done = subprocess.run(  # noqa: S603 - every word of it is ours
                    argv,
                    pass_fds=sandbox.descriptors,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    env={},
                    timeout=PROBE_SECS,
                )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
    if done.returncode != 42:
        return None
    return program


class Sandbox:
    """For one command: the arguments in front of it, and the descriptors that these need."""

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
        if self._filter is None:
            return (self._server,)
        return (self._server, self._filter)

    def argv(self) -> tuple[str, ...]:
        groups: tuple[str, ...] = ()
        if self.group is not None:
            groups = tuple(str(folder) for folder in self.group.folders)
        argv = limits.limited(self.limits, groups)
        argv += wrapped(self.program, self.workspace, self.limits)
        if self._filter is not None:
            argv += ("--seccomp", str(self._filter))
        return argv + limits.entry(self.limits, self._server)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        os.close(self._kept_open)
        for descriptor in self.descriptors:
            os.close(descriptor)


def wrapped(program: str, workspace: Path, limits: Limits) -> tuple[str, ...]:
    """Bubblewrap with its options. The only limits among them are those of file systems in memory."""
    for folder in _VISIBLE:
        if workspace.is_relative_to(folder):
            raise ValueError(
                f"the workspace lies in {folder}, where the sandbox can't hide what is beside it"
            )
    argv = [program, "--unshare-all", "--unshare-user", "--disable-userns"]
    argv += ["--die-with-parent", "--new-session"]
    argv += ["--cap-drop", "ALL"]  # a server that runs as root would pass all of them on
    argv += ["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"]
    for name in _SYSTEM:
        if os.path.islink(name):
            argv += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            argv += ["--ro-bind", name, name]
    argv += _PRIVATE_SETTINGS.options()
    if limits.has_network:
        argv.append("--share-net")
        # Names must resolve also where this file is a link to another folder.
        resolver = os.path.realpath("/etc/resolv.conf")
        if not resolver.startswith("/etc/"):
            argv += ["--ro-bind-try", resolver, resolver]
    argv += ["--dev", "/dev"]
    argv += _memory_folder("/dev/shm", SHARED_MEMORY_MB)  # noqa: S108
    argv += _memory_folder("/tmp", limits.temporary_mb)  # noqa: S108
    argv += ["--proc", "/proc"]
    # Root could set the machine's sysctls even without capabilities.
    argv += ["--remount-ro", "/proc"]
    argv += ["--bind", str(workspace), str(workspace), "--chdir", str(workspace)]
    # Both are file systems in memory, without a limit of their size.
    argv += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return tuple(argv)


def _memory_folder(path: str, size_mb: int) -> tuple[str, ...]:
    return ("--perms", "1777", "--size", str(size_mb * MIB), "--tmpfs", path)
