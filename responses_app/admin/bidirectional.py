"""Bidirectional controls: characters without a width that change the order of what is shown.

With them, the arguments of a call could read as another command than the one that an operator
allows.
"""

import re

CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escaped(text: str) -> str:
    """With these controls as JSON writes them."""
    return CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
