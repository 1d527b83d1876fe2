"""What a sandboxed command may use, and the limits of each of its processes."""

import os
import re
import resource

from gateway_app.config.terminal_limits import Limits

MIB = 1024 * 1024
SHARED_MEMORY_MB = 64  # as much as Docker gives a container
# From this version on the kernel counts the processes of each user namespace, before all of the account's.
_COUNTS_PER_NAMESPACE = (5, 14)

DEFAULT_LIMITS = Limits()


def limited(limits: Limits, groups: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The arguments in front of a program that is to have these limits, in these control groups.

    A shell sets them: code of our own between fork and exec could hang in a server with threads.
    The data limit stands for memory. Programs such as Node, Java and Go reserve
    address space that they never touch, and would not start under a limit of the address space.
    """
    data_kb = _reachable(resource.RLIMIT_DATA, limits.memory_mb * MIB) // 1024
    file_kb = _reachable(resource.RLIMIT_FSIZE, limits.file_mb * MIB) // 1024
    cpu_secs = _reachable(resource.RLIMIT_CPU, limits.cpu_secs)
    open_files = _reachable(resource.RLIMIT_NOFILE, limits.open_files)
    steps = [f"ulimit -c 0 -d {data_kb} -f {file_kb} -t {cpu_secs} -n {open_files}"]
    for position in range(1, len(groups) + 1):
        steps.append(f'echo 0 > "${position}/cgroup.procs"')  # 0 is the process that writes
    steps.append(f"shift {len(groups)}")
    steps.append('exec "$@"')
    script = " && ".join(steps)
    return ("/bin/bash", "--norc", "--noprofile", "-c", script, "bash", *groups)


def entry(limits: Limits, server: int) -> tuple[str, ...]:
    """The first program inside of the sandbox, where only its own processes are counted.

    ``server`` is the end of a pipe that can be read once the server is gone. One that is killed
    before bubblewrap is tied to its life would leave the command behind.
    """
    steps = [f"if read -t 0 -u {server}; then exit 1; fi", f"exec {server}<&-"]
    if counts_processes():
        steps.append(f"ulimit -u {_reachable(resource.RLIMIT_NPROC, limits.processes)} || exit 1")
    steps.append('exec "$@"')
    script = "; ".join(steps)
    return ("/bin/bash", "--norc", "--noprofile", "-c", script, "bash")


def counts_processes() -> bool:
    """The kernel lets root have any number of processes, whatever the limit is."""
    found = re.match(r"(\d+)\.(\d+)", os.uname().release)
    if found is None or os.geteuid() == 0:
        return False
    return (int(found[1]), int(found[2])) >= _COUNTS_PER_NAMESPACE


def _reachable(kind: int, value: int) -> int:
    """A limit that the server itself has can't be raised."""
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY:
        return value
    return min(value, hard)
