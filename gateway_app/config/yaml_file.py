"""YAML in which no key may be set twice: the standard loader silently takes the last one."""

from typing import Any

import yaml


class DuplicateKey(yaml.YAMLError):
    """One mapping sets a key twice."""


class _UniqueKeyLoader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Keys are compared before merge keys (``<<``) are resolved, which may override others."""
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            identity = (key.tag, key.value)
            line = key.start_mark.line + 1
            if identity in lines:
                raise DuplicateKey(
                    f"{key.value} is set twice, in lines {lines[identity]} and {line}."
                )
            lines[identity] = line
        return node


def load_yaml(text: str) -> Any:
    # A SafeLoader: it makes plain values only.
    return yaml.load(text, _UniqueKeyLoader)  # noqa: S506
