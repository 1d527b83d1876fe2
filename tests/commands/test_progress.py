"""Progress: one line with rate and time left on a terminal, a line per second elsewhere; help with examples."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command, find_commands, load_command_class
from django.core.management.base import OutputWrapper
from django.core.management.color import color_style

from responses_app.management import progress
from responses_app.management.progress import Progress
from responses_app.models import Conversation
from tests.support.bulk_rows import make_row
from tests.support.server import ROOT


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TERMINAL_STEP_SECS", 0)
    monkeypatch.setattr(progress, "STEP_SECS", 0)


def test_a_terminal_has_one_line_with_the_rate_and_the_time_left() -> None:
    screen = Terminal()
    errors = OutputWrapper(screen)
    errors.style_func = color_style(force_color=True).ERROR
    with Progress(errors, "read", 20) as shown:
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


@pytest.mark.django_db
@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_an_export_counts_every_line_that_it_will_write(format: str, tmp_path: Path) -> None:
    row = make_row()
    Conversation.objects.create(owner=row.owner, session=row.session)
    errors = StringIO()
    call_command("export_responses", "--output", str(tmp_path / "all"), "--format", format, stderr=errors)
    steps = [line for line in errors.getvalue().splitlines() if " of " in line]
    assert steps[-1] == "... 2 of 2 exported"


def own_commands() -> list[tuple[str, str]]:
    found = []
    for app in ("gateway_app", "responses_app"):
        for name in find_commands(str(ROOT / app / "management")):
            found.append((app, name))
    return found


@pytest.mark.parametrize(("app", "name"), own_commands())
def test_the_help_of_a_command_ends_with_examples(app: str, name: str) -> None:
    command = load_command_class(app, name)
    text = command.create_parser("manage.py", name).format_help()
    examples = text.partition("\nexamples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith("  manage.py ") for line in examples)
