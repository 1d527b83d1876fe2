"""LM Studio. Read in lmstudio-ai/docs c6854fb (api-changelog.md, tools.mdx) and its bug tracker."""

import json
from collections.abc import Iterator

from tests.dialects.dialect import (
    ChatForm,
    Delta,
    Dialect,
    Refused,
    arguments_in_pieces,
    content,
    schema_of_chat,
)
from tests.dialects.rules import formats, one_system_message_first
from tests.support.model_stub import Answer, Raw, Step, sse


def _reasoning(text: str, size: int) -> Iterator[Delta]:
    """api-changelog.md: a field of its own only with a setting of the app."""
    yield from content(f"<think>{text}</think>\n\n", size)


def _error(refused: Refused) -> Answer:
    """tada#16: the error is a text."""
    return Answer(refused.status, json.dumps({"error": refused.message}).encode())


def _overflow(tokens: int, window: int) -> tuple[Step, ...]:
    """bug-tracker#2322: the status is 200; opencode#11141 has the words."""
    message = f"Cannot truncate prompt with n_keep ({tokens}) >= n_ctx ({window})"
    return (Raw(sse({"error": {"message": message}, "message": message}, "error")),)


CRASHED = {"error": {"message": "The model has crashed without additional information. (Exit code: null)"}}

LMSTUDIO = Dialect(
    name="lmstudio",
    provider="lmstudio",
    form=ChatForm(
        extra={"system_fingerprint": "m"},
        has_role_in_first=True,
        reasoning=_reasoning,
        calls=arguments_in_pieces,  # api-changelog.md 0.3.17
    ),
    call_id=lambda number: str(917_000_000 + number),
    error=_error,
    rules=(
        formats(
            ("text", "json_schema"),  # bug-tracker#189
            lambda kind: Refused("'response_format.type' must be 'json_schema' or 'text'"),
        ),
        # bug-tracker#2298
        one_system_message_first(Refused("Error rendering prompt with jinja template", 500)),
    ),
    overflow=_overflow,
    # bug-tracker#1057
    broken_off=(Raw(sse(CRASHED, "error")),),
    has_format=schema_of_chat,
)
