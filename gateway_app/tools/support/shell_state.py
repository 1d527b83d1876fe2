"""What a shell remembers from one call to the next: working directory, exported variables, functions.

Bash writes it as a script, to a descriptor that it inherits, and reads it from another. So the file
that keeps it need not be visible where commands run, and no command can make the server follow a link.
"""

import os
import secrets
from fcntl import F_DUPFD_CLOEXEC, fcntl
from pathlib import Path
from types import TracebackType
from typing import Self

MAX_STATE_BYTES = 1_000_000
_FIRST_FD = 100  # scripts like to use 3 to 9 themselves, bash uses 10 and up

# `builtin` throughout: a function of the user's may have any name. The command begins on line 1, so that
# its errors have the right line. It may replace the trap, so the state is also saved without one; the
# braces hide that from `set -x`.
_DRIVER = """\
builtin source /dev/fd/{given} 2>/dev/null; _save=$2; {save}; builtin trap '{{ {save}; }} 2>/dev/null' EXIT; {run}

{{ _status=$?; {save}; }} 2>/dev/null; builtin exit "$_status"
"""  # without the empty line bash does not know the brace after an unbalanced quote in the command
_RUN_SAVE = 'unset -f builtin; builtin eval "$_save"'
_RUN_COMMAND = 'builtin eval "builtin shift 2; $1"'
# NUL, which no variable can hold, marks both ends, so that a half-written state is not taken for a whole one.
# A folder that is gone makes the state before the command differ from any after it: it is reported once.
_SAVE = r"""builtin set +exu; {{
builtin printf '\0unset -v PATH HOME LANG TERM SHELL\n'
builtin export -p
builtin printf 'cd -- %q || {{ printf "[the folder %%s is gone]\\n" %q; cd -P .; _gone=1; }}\n' "$PWD" "$PWD"
builtin printf 'OLDPWD=%q\n' "${{OLDPWD-}}"
builtin declare -f
builtin export -pf
builtin printf '%s\0' "${{_gone-}}"; builtin unset -v _gone
}} >&{kept}"""


def state_file(workspace: Path, *, is_sandboxed: bool) -> Path:
    """Beside the workspace, where no tool looks; the state of the sandbox is never run outside of it."""
    folder = workspace.parent / f".{workspace.name}-shell"
    if is_sandboxed:
        return folder / "sandboxed"
    return folder / "unsandboxed"


def read_state(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""  # the first command of this workspace


class ShellState:
    """The state around one call, and the two descriptors through which it passes."""

    def __init__(self, file: Path, before: bytes) -> None:
        self.file = file
        self.given = _unnamed_file(before)
        self.kept = _unnamed_file(b"")

    def argv(self, command: str) -> tuple[str, ...]:
        driver = _DRIVER.format(given=self.given, save=_RUN_SAVE, run=_RUN_COMMAND)
        save = _SAVE.format(kept=self.kept)
        return ("/bin/bash", "--norc", "--noprofile", "-c", driver, "bash", command, save)

    def save(self) -> bool:
        """Was the shell able to write its state? A command that changed nothing overwrites no other's change."""
        written = os.pread(self.kept, 3 * MAX_STATE_BYTES, 0)
        # Before the command, after it, and perhaps once more from the trap.
        states = written.split(b"\0")[1::2]
        if len(states) < 2 or not written.endswith(b"\0"):
            return False
        if states[-1] != states[0]:
            self._replace_file(states[-1])
        return True

    def _replace_file(self, state: bytes) -> None:
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        unfinished = self.file.with_name(f"{self.file.name}-{secrets.token_hex(8)}")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(state)
        unfinished.replace(self.file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        os.close(self.given)
        os.close(self.kept)


def _unnamed_file(content: bytes) -> int:
    """In memory: what a command of an unstored request exports is not to be left on the disk."""
    with open(os.memfd_create("shell-state"), "r+b", buffering=0) as file:
        file.write(content)
        file.seek(0)
        return fcntl(file.fileno(), F_DUPFD_CLOEXEC, _FIRST_FD)
