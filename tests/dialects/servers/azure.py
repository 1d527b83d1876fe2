"""Azure OpenAI. Read in openai-node docs/azure.md; pydantic-ai#797, openai-python#1677, openai-dotnet#55."""

from dataclasses import replace

from tests.dialects.dialect import ChatForm, Refused, arguments_in_pieces
from tests.dialects.rules import header
from tests.dialects.servers.openai import CHAT_RULES, OPENAI
from tests.support.model_stub import sse

SAFE = {"hate": {"filtered": False, "severity": "safe"}}
PROMPT = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
OFFSETS = {"check_offset": 40, "start_offset": 0, "end_offset": 80}
FILTERED = {"finish_reason": None, "index": 0, "content_filter_results": SAFE, "content_filter_offsets": OFFSETS}

AZURE = replace(
    OPENAI,
    name="azure",
    provider="azure",
    form=ChatForm(
        # pydantic-ai#797: the first chunk has no choice
        opening=(
            sse(PROMPT | {"prompt_filter_results": [{"prompt_index": 0, "content_filter_results": SAFE}]}),
            {"role": "assistant", "content": "", "refusal": None},
        ),
        calls=arguments_in_pieces,
        # openai-python#1677: the filter's chunks have no delta
        closing=(sse(PROMPT | {"choices": [FILTERED]}),),
    ),
    rules=(
        header("api-key", Refused("Access denied due to invalid subscription key.", 401, {"code": "401"})),
        *CHAT_RULES,
    ),
)
