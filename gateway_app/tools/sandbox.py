"""A view of the machine with the system's programs and one workspace, of which only the latter can be written to.

It is bubblewrap's work; a bubblewrap that can't make namespaces here counts as not installed.
"""

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PROBE_SECS = 5
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SHOWN = (Path("/usr"), Path("/etc"), *(Path(name) for name in _SYSTEM))


@cache
def bubblewrap() -> str | None:
    """The program, if it works: it is run once with the very options that commands get."""
    program = shutil.which("bwrap")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            argv = [*wrapped(program, Path(folder).resolve()), "/bin/bash", "-c", "exit 42"]
            done = subprocess.run(  # noqa: S603 - every word of it is ours
                argv, stdin=subprocess.DEVNULL, capture_output=True, env={}, timeout=PROBE_SECS
            )
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return None
    return program if done.returncode == 42 else None


def wrapped(program: str, workspace: Path) -> tuple[str, ...]:
    """What comes before a command that is to run in the sandbox."""
    for folder in _SHOWN:
        if workspace.is_relative_to(folder):
            raise ValueError(f"the workspace lies in {folder}, where the sandbox can't hide what is beside it")
    return (
        *(program, "--unshare-all", "--share-net", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL"),  # a server that runs as root would pass all of them on
        *("--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc"),
        *_system_folders(),
        *_secrets(Path("/etc")),
        *_resolver(),
        *("--dev", "/dev", "--tmpfs", "/tmp", "--proc", "/proc"),  # noqa: S108
        *("--remount-ro", "/proc"),  # root could set the machine's sysctls even without capabilities
        *("--bind", str(workspace), str(workspace), "--chdir", str(workspace)),
    )


def _system_folders() -> Iterator[str]:
    for name in _SYSTEM:
        if os.path.islink(name):
            yield from ("--symlink", os.readlink(name), name)
        elif os.path.isdir(name):
            yield from ("--ro-bind", name, name)


def _secrets(folder: Path) -> Iterator[str]:
    """Covers what not everybody may read: the server's account may have more rights than a command should."""
    for entry in os.scandir(folder):
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except OSError:
            continue  # gone, or out of the server's own reach
        if stat.S_ISLNK(mode):
            continue
        if stat.S_ISDIR(mode):
            yield from _secrets(Path(entry)) if mode & stat.S_IROTH else ("--tmpfs", entry.path)
        elif not mode & stat.S_IROTH:
            yield from ("--ro-bind", "/dev/null", entry.path)


def _resolver() -> Iterator[str]:
    """Names must resolve where the file that says how is a link to elsewhere."""
    real = os.path.realpath("/etc/resolv.conf")
    if not real.startswith("/etc/"):
        yield from ("--ro-bind-try", real, real)
