"""A consistent copy of the database, made while the server runs."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from responses_app.management.examples import add_examples

PRIVATE = 0o600
# libpq's variables by Django's names. As an argument, the password would be visible to all users.
PG_VARIABLES = {
    "PGHOST": "HOST",
    "PGPORT": "PORT",
    "PGUSER": "USER",
    "PGPASSWORD": "PASSWORD",
    "PGDATABASE": "NAME",
}


class Command(BaseCommand):
    help = "Write a consistent copy of the database to FILE. A server may run meanwhile."

    def add_arguments(self, parser: CommandParser) -> None:
        add_examples(parser, "backup hermes-2026-11-18.sqlite3")
        parser.add_argument("file", metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        file = Path(options["file"])
        draft = file.with_name(f".{file.name}.part")
        try:
            os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE))
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE))
        except OSError as error:
            raise CommandError(
                f"{file} cannot be made: {error.strerror}. Name a file that does not exist."
            ) from error
        try:
            if connection.vendor == "sqlite":
                _copy_sqlite(draft)
            else:
                _dump_postgresql(draft)
            draft.replace(file)
        except BaseException:
            draft.unlink(missing_ok=True)
            file.unlink()
            raise
        self.stdout.write(f"Wrote {file}, {file.stat().st_size} bytes.")


def _copy_sqlite(draft: Path) -> None:
    """SQLite's online backup is consistent, however much is written meanwhile."""
    connection.ensure_connection()
    with closing(sqlite3.connect(draft)) as copy:
        connection.connection.backup(copy)


def _dump_postgresql(draft: Path) -> None:
    program = shutil.which("pg_dump")
    if program is None:
        raise CommandError(
            "pg_dump is not on this machine; install the PostgreSQL client programs."
        )
    settings = connection.settings_dict
    env = dict(os.environ)
    for name, key in PG_VARIABLES.items():
        if settings.get(key):
            env[name] = str(settings[key])
    command = [program, "--format=custom", "--no-owner", "--file", str(draft)]
    done = subprocess.run(  # noqa: S603
        command, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CommandError(f"pg_dump failed: {done.stderr.strip()}")
