"""The context windows of hosted models whose servers do not report them, by the name of the model.

From the services' own pages on models. A server on a private address may run any model under
these names with another window, so nothing here is about those.
"""

import re

from gateway_app.config.models import Model
from gateway_app.config.upstream_limits import is_nearby

# The first pattern that matches the start of the name counts; a folder in front is left out.
_WINDOWS = (
    (r"gpt-5", 400_000),
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-4o|gpt-4-turbo|chatgpt-4o|gpt-4-(?:0125|1106)|gpt-4\.5", 128_000),
    (r"gpt-4-32k", 32_768),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5", 16_385),
    (r"o1-(?:mini|preview)", 128_000),
    (r"o[134](?:-|$)", 200_000),
    (r"gpt-oss|codex-mini", 131_072),
    (r"deepseek", 128_000),
    (r"claude", 200_000),
    (r"gemini", 1_048_576),
    (r"gemma-3", 131_072),
    (r"codestral", 256_000),
    (r"mistral|magistral|ministral|devstral|pixtral", 128_000),
    (r"grok-4-fast|grok-4-1-fast", 2_000_000),
    (r"grok-4|grok-code", 256_000),
    (r"grok", 131_072),
    (r"kimi-k2", 262_144),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), window) for pattern, window in _WINDOWS)


def known_window(model: Model) -> int:
    """0 if the table does not have it."""
    if not model["base_url"] or is_nearby(model["base_url"]):
        return 0
    name = model["model"].rpartition("/")[2]
    for pattern, window in _PATTERNS:
        if pattern.match(name):
            return window
    return 0
