"""Adds keys to the text of a YAML file: comments, order and quotes of the rest stay as they are."""

import re
from typing import Any

import yaml


class CannotEdit(Exception):
    """The text has a form in which the key can't be added; its author has to add it."""


def with_key(text: str, path: str, value: Any) -> str:
    """The text with ``section.key`` or ``key`` set; checked by reading it again."""
    section, _, key = path.rpartition(".")
    line = f"{key}: {yaml.safe_dump(value, default_flow_style=True, allow_unicode=True).strip()}"
    line = line.removesuffix("\n...").removesuffix("...").rstrip()
    if section:
        changed = _in_section(text, section, key, line)
    else:
        changed = _at_top(text, key, line)
    wanted = _with_value(yaml.safe_load(text) or {}, section, key, value)
    if yaml.safe_load(changed) != wanted:
        raise CannotEdit(f"{path} can't be added to this file; write {line!r} yourself.")
    return changed


def _with_value(loaded: dict[str, Any], section: str, key: str, value: Any) -> dict[str, Any]:
    found = dict(loaded)
    if not section:
        return found | {key: value}
    return found | {section: (found.get(section) or {}) | {key: value}}


def _at_top(text: str, key: str, line: str) -> str:
    replaced, count = re.subn(rf"(?m)^{re.escape(key)}:.*$", line.replace("\\", r"\\"), text)
    if count:
        return replaced
    return f"{_ended(text)}{line}\n"


def _in_section(text: str, section: str, key: str, line: str) -> str:
    head = re.search(rf"(?m)^{re.escape(section)}:[ \t]*(#.*)?$", text)
    if head is None:
        return f"{_ended(text)}{section}:\n  {line}\n"
    indent = "  "
    first = re.match(r"(?:[ \t]*(?:#.*)?\n)*([ \t]+)\S", text[head.end() + 1 :])
    if first is not None:
        indent = first[1]
    before, after = text[: head.end()], text[head.end() :]
    return f"{before}\n{indent}{line}{after}"


def _ended(text: str) -> str:
    if text and not text.endswith("\n"):
        return f"{text}\n"
    return text
