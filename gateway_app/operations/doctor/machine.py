"""Checks of this machine: who can log in, the home folder, files and the sandbox.

They are registered as Django's system checks for deployment: ``check --deploy`` and ``doctor`` run
them. A start does not: it refuses bad settings only.
"""

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks

from gateway_app.config.terminal_limits import Limits
from gateway_app.operations.doctor.messages import Ok
from gateway_app.operations.model_banner import ignored_keys_warning
from gateway_app.server.limits import needed_files, reachable_files
from gateway_app.tools.support import seccomp
from gateway_app.tools.support.cgroups import usable_parents
from gateway_app.tools.support.limits import counts_processes
from gateway_app.tools.terminal import NO_SANDBOX, NO_SANDBOX_REMEDY, lacks_sandbox

TAG = "machine"
MIN_FREE_BYTES = 1024**3
OTHERS = 0o077  # the rights of group and others
GENERATED_FILES = ("api_key", "secret_key", "admin_login")
SECRET_FILES = (*GENERATED_FILES, "config.yaml", "hermes.sqlite3")


@checks.register(TAG, deploy=True)
def check_auth(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    if settings.HERMES_AUTH == "on":
        return []
    return [
        checks.Warning(
            "HERMES_AUTH=off lets every program on this machine use the API",
            hint="Remove HERMES_AUTH.",
            obj="settings",
            id="gateway_app.W001",
        )
    ]


@checks.register(TAG, deploy=True)
def check_config_keys(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    ignored = ignored_keys_warning()
    if not ignored:
        return []
    return [
        checks.Warning(
            ignored.rstrip("."),
            hint="Remove them, or see docs/configuration.md for the keys that exist.",
            obj="settings",
            id="gateway_app.W023",
        )
    ]


@checks.register(TAG, deploy=True)
def check_home(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    home: Path = settings.HERMES_HOME
    found: list[checks.CheckMessage] = []
    if _is_open_to_others(home):
        found.append(
            checks.Warning(
                f"other users can read {home}",
                hint=f"chmod 700 {home}",
                obj="home",
                id="gateway_app.W002",
            )
        )
    found.append(_check_writable(home))
    return found


def _check_writable(home: Path) -> checks.CheckMessage:
    probe = home / f".doctor-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        return checks.Error(
            f"cannot write to {home}: {error.strerror}",
            hint=f"chown or chmod {home} for the server's user",
            obj="home",
            id="gateway_app.E003",
        )
    free = shutil.disk_usage(home).free
    text = f"{home} can be written to, {free // 1024**2} MiB free"
    if free >= MIN_FREE_BYTES:
        return Ok("home", text)
    return checks.Warning(
        text, hint="Make room, or see prune_responses.", obj="home", id="gateway_app.W004"
    )


@checks.register(TAG, deploy=True)
def check_files(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    return [*_check_secrets(settings.HERMES_HOME), _check_open_files()]


def _check_secrets(home: Path) -> Iterator[checks.CheckMessage]:
    names: tuple[str, ...] = SECRET_FILES
    if not _is_open_to_others(home):
        names = GENERATED_FILES  # no other user gets into the folder; a copy may keep these modes
    is_all_closed = True
    for name in names:
        file = home / name
        if file.exists() and _is_open_to_others(file):
            is_all_closed = False
            yield checks.Error(
                f"other users can read {name}",
                hint=f"chmod 600 {file}",
                obj="files",
                id="gateway_app.E005",
            )
    if is_all_closed:
        present = [name for name in SECRET_FILES if (home / name).exists()]
        yield Ok("files", f"{len(present)} files with secrets, closed to other users")


def _is_open_to_others(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & OTHERS)


def _check_open_files() -> checks.CheckMessage:
    needed = needed_files()
    reachable = reachable_files()
    text = f"{settings.HERMES_MAX_CONNECTIONS} connections and the rest need {needed} open files"
    if reachable >= needed:
        return Ok("files", text)
    return checks.Warning(
        f"{text}, and the limit is {reachable}",
        hint="Raise the hard limit (LimitNOFILE, ulimit -Hn), or lower HERMES_MAX_CONNECTIONS.",
        obj="files",
        id="gateway_app.W006",
    )


@checks.register(TAG, deploy=True)
def check_terminal(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    mode = settings.HERMES_TERMINAL
    if mode == "off":
        return [Ok("terminal", "off: the agent has no terminal")]
    if mode == "unsandboxed":
        return [
            checks.Warning(
                "commands run with the rights of the server",
                hint="Set HERMES_TERMINAL=sandboxed.",
                obj="terminal",
                id="gateway_app.W007",
            )
        ]
    if lacks_sandbox(mode):
        return [
            checks.Error(
                f"{NO_SANDBOX}: there is no terminal",
                hint=NO_SANDBOX_REMEDY,
                obj="terminal",
                id="gateway_app.E008",
            )
        ]
    limits: Limits = settings.HERMES_TERMINAL_LIMITS
    return [*_describe_sandbox(limits), _check_group_limits(limits), _check_system_calls()]


def _describe_sandbox(limits: Limits) -> Iterator[checks.CheckMessage]:
    network = "without network"
    if limits.has_network:
        network = "with the network of the machine"
    yield Ok("terminal", f"commands run in bubblewrap, {network}")
    yield Ok(
        "terminal",
        f"each process has up to {limits.memory_mb} MB of memory, "
        f"{limits.cpu_secs} s of processor time, files of {limits.file_mb} MB "
        f"and {limits.open_files} of them open",
    )


def _check_group_limits(limits: Limits) -> checks.CheckMessage:
    parents = usable_parents()
    if parents is not None:
        text = (
            f"each command has up to {limits.memory_mb} MB of memory "
            f"and {limits.processes} processes (control groups, version {parents.version})"
        )
        return Ok("terminal", text)
    text = "commands have no limit of their processes, nor of their memory in total"
    if counts_processes():
        text = (
            f"each command has up to {limits.processes} processes, "
            "and no limit of its memory in total"
        )
    return checks.Warning(
        text,
        hint="See docs/tools.md, limits: delegate a control group to the server.",
        obj="terminal",
        id="gateway_app.W009",
    )


def _check_system_calls() -> checks.CheckMessage:
    if seccomp.is_available():
        return Ok("terminal", "a filter refuses dangerous system calls")
    return checks.Warning(
        f"there is no filter of system calls for {platform.machine()}",
        hint="Use x86_64 or aarch64.",
        obj="terminal",
        id="gateway_app.W010",
    )
