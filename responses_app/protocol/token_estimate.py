"""An estimate of the tokens that texts and items take, made without any model.

It follows what tokenizers do with each script, and is near their larger counts: see the samples of
the tests. What the upstream counts corrects it, see ``gateway_app/agent/budget.py``.
"""

import re
from functools import lru_cache
from typing import Any

import orjson

from responses_app.protocol.file_tokens import FILE, file_tokens
from responses_app.protocol.items import (
    CALLS,
    OUTPUTS,
    Item,
    call_arguments,
    content_text_with_refusals,
)

CHARS_PER_TOKEN = 4  # of English text
TOKENS_PER_ITEM = 4  # what frames a message: role and separators
WITH_PARTS = OUTPUTS | {"message"}  # the content of other items has no parts
TOKENS_PER_IMAGE = 765  # one high-detail image of medium size
# A longer text is judged by slices of it, so that no estimate holds up other turns.
SAMPLED_CHARS = 8_192
SLICES = 64

# One token each: a short word, two digits, a run of signs, an indent, an end of line, a control
# character. Long runs of white space have one for each few characters.
_PIECES = re.compile(
    r"[A-Z]?[a-z\u00df-\u024f]+|[A-Z\u00c0-\u00de]{1,2}|[0-9]{1,2}|[!-/:-@\[-`{-~]{1,3}"
    r"|[\n\r\t]\s{0,7}|  {1,7}|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_LONG_WORDS = re.compile(r"[a-z\u00df-\u024f]{6}(?=[a-z\u00df-\u024f]{2})")  # a second token
_ACCENTS = re.compile(r"[\u00c0-\u024f]")  # they split a word
# Other scripts: tokens per character, signs and spaces between them included.
_SCRIPTS = (
    (re.compile(r"[\u0080-\u00bf\u0250-\u036f]"), 1.0),  # signs, phonetic letters, accents alone
    (re.compile(r"[\u0370-\u052f]"), 0.42),  # Greek, Cyrillic
    (re.compile(r"[\u0530-\u08ff]"), 0.6),  # Armenian, Hebrew, Arabic
    (re.compile(r"[\u0900-\u1cff]"), 0.9),  # Indic scripts, Thai, Georgian and others
    (re.compile(r"[\u1d00-\u2e7f]"), 1.0),  # signs
    (re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]"), 1.0),  # Chinese, Japanese
    (re.compile(r"[\ua000-\uabff]"), 1.0),
    (re.compile(r"[\uac00-\ud7ff]"), 1.1),  # Korean
    (re.compile(r"[\ue000-\uf8ff\ufb00-\ufeff\U00010000-\U0010ffff]"), 1.9),  # emoji
)


def text_tokens(text: str) -> int:
    if len(text) <= SAMPLED_CHARS:
        return round(_counted(text))
    step = len(text) / SLICES
    width = SAMPLED_CHARS // SLICES
    slices = []
    for number in range(SLICES):
        start = int(number * step)
        slices.append(text[start : start + width])
    return round(_counted("".join(slices)) * len(text) / SAMPLED_CHARS)


# For texts of operators, which are the same in many requests.
prompt_tokens = lru_cache(maxsize=256)(text_tokens)


def _counted(text: str) -> float:
    tokens = float(len(_PIECES.findall(text)) + len(_LONG_WORDS.findall(text)))
    if text.isascii():
        return tokens
    tokens += len(_ACCENTS.findall(text))
    for pattern, weight in _SCRIPTS:
        tokens += weight * len(pattern.findall(text))
    return tokens


def tokens_of(chars: int) -> int:
    """Of a text of which only the length is known."""
    return -(-chars // CHARS_PER_TOKEN)


def estimate_tokens(items: list[Item], instructions: str | None, tools: list[Any]) -> int:
    tokens = text_tokens(instructions or "")
    for item in items:
        tokens += item_tokens(item)
    for tool in tools:
        tokens += tool_tokens(tool)
    return tokens


def tool_tokens(spec: dict[str, Any]) -> int:
    return text_tokens(orjson.dumps(spec).decode())


def item_tokens(item: Item) -> int:
    if item.get("type") == "reasoning":
        return TOKENS_PER_ITEM  # see ``sent_reasoning`` for the tool loop under way
    if item.get("type") in CALLS:
        name = item.get("name") or ""
        return TOKENS_PER_ITEM + text_tokens(name) + text_tokens(call_arguments(item))
    content = item.get("content") or item.get("output") or item.get("arguments") or ""
    if isinstance(content, str):
        return TOKENS_PER_ITEM + text_tokens(content)
    if item["type"] not in WITH_PARTS:
        return TOKENS_PER_ITEM + text_tokens(orjson.dumps(content).decode())
    tokens = TOKENS_PER_ITEM + text_tokens(content_text_with_refusals(content))
    for part in content:
        if part.get("type") == "input_image":
            tokens += TOKENS_PER_IMAGE
        elif part.get("type") == FILE:
            tokens += file_tokens(part, text_tokens)
    return tokens
