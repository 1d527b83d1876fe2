"""Examples at the end of a command's help."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from textwrap import fill

from django.core.management.base import DjangoHelpFormatter

HELP_COLUMNS = 78


class ExamplesFormatter(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """Django's order of the options; the lines of the examples stay lines."""


def add_examples(parser: ArgumentParser, *commands: str) -> None:
    if parser.description:
        parser.description = fill(parser.description, HELP_COLUMNS)
    parser.formatter_class = ExamplesFormatter
    lines = [f"  manage.py {command}" for command in commands]
    parser.epilog = "\n".join(["examples:", *lines])
