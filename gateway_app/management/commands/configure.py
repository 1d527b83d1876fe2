import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from gateway_app.config.versions import (
    NEWEST,
    VERSION_KEY,
    NewKey,
    config_version,
    keys_since,
)
from gateway_app.config.yaml_edits import CannotEdit, with_key
from responses_app.management.examples import add_examples


class Command(BaseCommand):
    help = "Ask for the keys that are new since the version of config.yaml, and write the file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(parser, "configure")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = settings.HERMES_HOME / "config.yaml"
        text = ""
        if path.exists():
            text = path.read_text()
        version = config_version(yaml.safe_load(text) or {})
        if version > NEWEST:
            raise CommandError(
                f"config.yaml has version {version}, and this server knows up to {NEWEST}."
            )
        if version == NEWEST:
            self.stdout.write(f"config.yaml has version {NEWEST}, which is the newest.")
            return
        changed = self._walk(text, version)
        try:
            changed = with_key(changed, VERSION_KEY, NEWEST)
        except CannotEdit as error:
            raise CommandError(str(error)) from error
        _replace(path, changed)
        self.stdout.write(f"{path} has version {NEWEST} now. Restart the server to use it.")

    def _walk(self, text: str, version: int) -> str:
        self.stdout.write(f"New since version {version}. Press Enter to leave a key out.")
        for key in keys_since(version):
            if not key.question:
                continue
            value = self._ask(key)
            if value is None:
                continue
            try:
                text = with_key(text, key.path, value)
            except CannotEdit as error:
                self.stderr.write(str(error))
        others = [key.path for key in keys_since(version) if not key.question]
        self.stdout.write(f"Also new: {', '.join(others)}. docs/configuration.md explains them.")
        return text

    def _ask(self, key: NewKey) -> Any:
        while True:
            given = input(f"{key.question} {key.path}, for example {key.example}: ").strip()
            if not given:
                return None
            try:
                return yaml.safe_load(given)
            except yaml.YAMLError as error:
                self.stderr.write(f"That is no YAML value: {error}")


def _replace(path: Path, text: str) -> None:
    """As a whole: a crash leaves the old file or the new one."""
    fresh = path.with_name(f"{path.name}.new")
    mode = 0o600
    if path.exists():
        mode = path.stat().st_mode & 0o777
    fresh.touch(mode=mode)
    fresh.chmod(mode)
    with fresh.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
