"""The system calls that a sandboxed command may not make, as a program for the kernel's filter.

Every file descriptor, namespace and mount of the sandbox stays as bubblewrap made it, and the
parts of the kernel in which most escapes were found are out of reach. All else is allowed.
"""

import errno
import os
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

# BPF instructions: code, jump if true, jump if false, operand.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data
_X32_BIT = 0x40000000  # the same calls under other numbers

NAMESPACES = 0x7E020000  # CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_TIME_NAMESPACE = 0x80  # a flag of unshare; in clone its bit belongs to the signal number
SET_ID_BITS = 0o6000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C  # both put characters into the input of a terminal
_CURRENT_PERSONALITY = 0xFFFFFFFF
# UNIX, INET, INET6, NETLINK. Others are kernel interfaces, or reach a virtual machine's host (VSOCK).
_FAMILIES = (1, 2, 10, 16)

# Numbers since Linux 5.1 are the same on every machine.
_NEWER = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}
_HIDDEN = {"clone3": 435, "openat2": 437}
_X86_64 = {
    "ptrace": 101,
    "syslog": 103,
    "uselib": 134,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "chroot": 161,
    "acct": 163,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "lookup_dcookie": 212,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "perf_event_open": 298,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}
_AARCH64 = {
    "lookup_dcookie": 18,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "swapon": 224,
    "swapoff": 225,
    "perf_event_open": 241,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}


@dataclass(frozen=True)
class Machine:
    architecture: int  # AUDIT_ARCH_*
    denied: dict[str, int]
    # Denied when an argument has one of these bits: the number, which argument, the bits.
    denied_bits: tuple[tuple[int, int, int], ...]
    ioctl: int
    personality: int
    socket: int
    has_x32: bool = False
    # Their arguments are in memory, out of a filter's sight; programs fall back to the older call.
    hidden: dict[str, int] = field(default_factory=_HIDDEN.copy)


MACHINES = {
    "x86_64": Machine(
        architecture=0xC000003E,
        denied=_X86_64 | _NEWER,
        denied_bits=(
            (56, 0, NAMESPACES),  # clone
            (272, 0, NAMESPACES | _TIME_NAMESPACE),  # unshare
            (2, 2, SET_ID_BITS),  # open
            (85, 1, SET_ID_BITS),  # creat
            (90, 1, SET_ID_BITS),  # chmod
            (91, 1, SET_ID_BITS),  # fchmod
            (133, 1, SET_ID_BITS),  # mknod
            (257, 3, SET_ID_BITS),  # openat
            (259, 2, SET_ID_BITS),  # mknodat
            (268, 2, SET_ID_BITS),  # fchmodat
            (452, 2, SET_ID_BITS),  # fchmodat2
        ),
        ioctl=16,
        personality=135,
        socket=41,
        has_x32=True,
    ),
    "aarch64": Machine(
        architecture=0xC00000B7,
        denied=_AARCH64 | _NEWER,
        denied_bits=(
            (220, 0, NAMESPACES),  # clone
            (97, 0, NAMESPACES | _TIME_NAMESPACE),  # unshare
            (33, 2, SET_ID_BITS),  # mknodat
            (52, 1, SET_ID_BITS),  # fchmod
            (53, 2, SET_ID_BITS),  # fchmodat
            (56, 3, SET_ID_BITS),  # openat
            (452, 2, SET_ID_BITS),  # fchmodat2
        ),
        ioctl=29,
        personality=92,
        socket=198,
    ),
}


def is_available() -> bool:
    return platform.machine() in MACHINES


@cache
def filter_program() -> bytes:
    """For this machine; empty where its numbers are not known."""
    machine = MACHINES.get(platform.machine())
    if machine is None:
        return b""
    return b"".join(_instructions(machine))


def filter_file() -> int | None:
    """A new descriptor to read the program from, or None where there is none."""
    program = filter_program()
    if not program:
        return None
    descriptor = os.memfd_create("seccomp")
    os.write(descriptor, program)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _instructions(machine: Machine) -> Iterator[bytes]:
    yield _load(_ARCHITECTURE_AT)
    yield _step(_EQUAL, machine.architecture, 1, 0)
    yield _step(_RETURN, _KILL_PROCESS)
    yield _load(_NUMBER_AT)
    if machine.has_x32:
        yield _step(_AT_LEAST, _X32_BIT, 0, 1)
        yield _refuse(errno.ENOSYS)
    for number in machine.denied.values():
        yield _step(_EQUAL, number, 0, 1)
        yield _refuse(errno.EPERM)
    for number in machine.hidden.values():
        yield _step(_EQUAL, number, 0, 1)
        yield _refuse(errno.ENOSYS)
    for number, argument, bits in machine.denied_bits:
        yield from _for_call(number, argument, _refuse_bits(bits))
    yield from _for_call(machine.ioctl, 1, _refuse_values((TIOCSTI, TIOCLINUX)))
    yield from _for_call(
        machine.personality, 0, _allow_values((0, _CURRENT_PERSONALITY), errno.EPERM)
    )
    yield from _for_call(machine.socket, 0, _allow_values(_FAMILIES, errno.EAFNOSUPPORT))
    yield _step(_RETURN, _ALLOW)


def _for_call(number: int, argument: int, check: list[bytes]) -> Iterator[bytes]:
    """The check has the lower half of the argument: the kernel ignores the upper one for these calls."""
    body = [_load(_ARGUMENTS_AT + 8 * argument), *check, _load(_NUMBER_AT)]
    yield _step(_EQUAL, number, 0, len(body))
    yield from body


def _refuse_bits(bits: int) -> list[bytes]:
    return [_step(_ANY_BIT, bits, 0, 1), _refuse(errno.EPERM)]


def _refuse_values(values: tuple[int, ...]) -> list[bytes]:
    checks = []
    for value in values:
        checks.append(_step(_EQUAL, value, 0, 1))
        checks.append(_refuse(errno.EPERM))
    return checks


def _allow_values(values: tuple[int, ...], error: int) -> list[bytes]:
    checks = []
    for position, value in enumerate(values):
        checks.append(_step(_EQUAL, value, len(values) - position, 0))
    checks.append(_refuse(error))
    return checks


def _load(offset: int) -> bytes:
    return _step(_LOAD, offset)


def _refuse(error: int) -> bytes:
    return _step(_RETURN, _ERRNO | error)


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
