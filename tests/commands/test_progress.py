"""Progress: one line with rate and time left on a terminal, a line per second elsewhere; help with examples."""

from io import StringIO

import pytest
from django.core.management import load_command_class
from django.core.management.base import OutputWrapper

from responses_app.management import progress
from responses_app.management.progress import Progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TERMINAL_STEP_SECS", 0)
    monkeypatch.setattr(progress, "STEP_SECS", 0)


def test_a_terminal_has_one_line_with_the_rate_and_the_time_left() -> None:
    screen = Terminal()
    with Progress(OutputWrapper(screen), "read", 20) as shown:
        shown.add(10)
        shown.add(5)
    lines = screen.getvalue().split("\r\x1b[K")
    assert "\n" not in screen.getvalue()
    assert lines[1].startswith("10 of 20 read, ")
    assert lines[2].startswith("15 of 20 read, ")
    assert "/s, 0:00:0" in lines[2]
    assert lines[2].endswith(" left")
    assert lines[3] == ""  # other output begins on an empty line


def test_elsewhere_each_report_is_a_line() -> None:
    written = StringIO()
    with Progress(OutputWrapper(written), "read") as shown:
        shown.add(3)
    assert written.getvalue() == "... 3 read\n"


COMMANDS = "createkey erase_owner export_responses import_responses prune_responses rebuild_search seed_responses"


@pytest.mark.parametrize("name", COMMANDS.split())
def test_the_help_of_a_command_ends_with_examples(name: str) -> None:
    command = load_command_class("responses_app", name)
    text = command.create_parser("manage.py", name).format_help()
    examples = text.partition("\nexamples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith("  manage.py ") for line in examples)
