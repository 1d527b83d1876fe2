"""The name of an MCP server's tool: ``label.tool``."""

import hashlib
import re

MAX_NAME_CHARS = 64  # what model APIs take as the name of a function
MAX_LABEL_CHARS = 24  # of a name that is too long: the tool's own part matters more
DIGEST_CHARS = 8
_ODD = re.compile(r"[^A-Za-z0-9_-]")


def public_name(label: str, tool: str) -> str:
    """The same for the same tool at every start, and another for every other tool.

    A name that models would not take is cut and cleaned, and ends in a digest of the whole name:
    cleaning alone would give ``a/b`` and ``a b`` one name.
    """
    name = f"{label}.{tool}"
    if tool and len(name) <= MAX_NAME_CHARS and not _ODD.search(tool):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARS]
    start = f"{label[:MAX_LABEL_CHARS]}.{_ODD.sub('_', tool)}"
    return f"{start[: MAX_NAME_CHARS - DIGEST_CHARS - 1]}_{digest}"
