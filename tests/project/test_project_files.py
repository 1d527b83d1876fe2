"""The files beside the code: the Makefile, the hooks of pre-commit, the changelog."""

import re
import subprocess
from pathlib import Path

import yaml
from django.conf import settings

ROOT = Path(__file__).resolve().parent.parent.parent


def make(*arguments: str) -> list[str]:
    """The lines that make prints, in their order."""
    done = subprocess.run(["make", "--silent", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def hook_entries() -> list[str]:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    entries = []
    for repository in config["repos"]:
        assert repository["repo"] == "local"
        for hook in repository["hooks"]:
            entries.append(hook["entry"])
    return entries


def test_the_hooks_of_pre_commit_run_each_command_of_make_lint() -> None:
    commands = set()
    for entry in hook_entries():
        program, target = entry.split()
        assert program == "make"
        commands |= set(make("--dry-run", target))
    assert commands == set(make("--dry-run", "lint"))


def test_make_help_describes_each_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    described = [line.split(maxsplit=1) for line in make("help")]
    assert sorted(target for target, _ in described) == sorted(phony[1].split())


def test_make_alone_runs_the_server() -> None:
    assert make("--dry-run") == make("--dry-run", "run")


def test_the_changelog_begins_with_what_is_unreleased_and_this_version() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", settings.HERMES_VERSION]
