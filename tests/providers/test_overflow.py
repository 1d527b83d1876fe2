"""A request that does not fit into the context, in the words of each server."""

from typing import Any

import pytest

from gateway_app.agent.model_faults import ContextOverflow
from gateway_app.providers.openai.overflow import find_overflow

# The server, its message, and the numbers in it: tokens of the request, and the window.
MESSAGES: list[tuple[str, str, int | None, int | None]] = [
    (
        "OpenAI",
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
        "Please reduce the length of the messages.",
        9001,
        8192,
    ),
    ("Qwen", "输入长度超过最大上下文长度 8192", None, None),
    ("Zhipu", "Prompt 超长", None, None),
    ("Zhipu, tokens", "请求的 token 数超出模型的上下文长度限制", None, None),
    ("OpenAI Responses", "Your input exceeds the context window of this model.", None, None),
    (
        "vLLM",
        "This model's maximum context length is 4096 tokens. However, you requested 5200 tokens (5000 in the messages, "
        "200 in the completion).",
        5200,
        4096,
    ),
    (
        "vLLM 0.11",
        "This model's maximum context length is 4096 tokens and your request has 5000 input tokens.",
        5000,
        4096,
    ),
    (
        "vLLM, newer",
        "This model's maximum context length is 4096 tokens. However, you requested 512 output tokens and your prompt "
        "contains 5000 input tokens, for a total of 5512 tokens.",
        5000,
        4096,
    ),
    (
        "vLLM, tokens not all counted",
        "This model's maximum context length is 4096 tokens. However, you requested 512 output tokens and your prompt "
        "contains at least 3585 input tokens, for a total of at least 4097 tokens.",
        3585,
        4096,
    ),
    (
        "vLLM, characters",
        "This model's maximum context length is 4096 tokens. However, you requested 512 output tokens and your prompt "
        "contains 90000 characters (more than 57344 characters, which is the upper bound for 3584 input tokens).",
        None,
        4096,
    ),
    (
        "vLLM engine",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        5000,
        4096,
    ),
    ("vLLM renderer", "Input length (5000) exceeds model's maximum context length (4096).", 5000, 4096),
    (
        "SGLang",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        5000,
        4096,
    ),
    (
        "SGLang total",
        "Requested token count exceeds the model's maximum context length of 4096 tokens. "
        "You requested a total of 5000 tokens: 4000 tokens from the input messages.",
        5000,
        4096,
    ),
    (
        "llama-server",
        "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it",
        9000,
        4096,
    ),
    (
        "llama-server, older",
        "the request exceeds the available context size. try increasing the context size",
        None,
        None,
    ),
    ("llama-cpp-python", "Requested tokens (3000) exceed context window of 2048", 3000, 2048),
    (
        "LM Studio",
        "The number of tokens to keep from the initial prompt is greater than the context length "
        "(n_keep: 5000 >= n_ctx: 4096).",
        5000,
        4096,
    ),
    ("LM Studio, API", "Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)", 15_028, 7424),
    (
        "LM Studio, older",
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
        5000,
        4096,
    ),
    ("Ollama", "the input length exceeds the context length", None, None),
    ("Ollama, newer", "prompt too long; exceeded max context length by 904 tokens", None, None),
    ("Anthropic", "prompt is too long: 210,000 tokens > 200,000 maximum", 210_000, 200_000),
    (
        "Anthropic with max_tokens",
        "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000, decrease input length",
        199_000,
        200_000,
    ),
    (
        "Gemini",
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        1_100_000,
        1_048_576,
    ),
    (
        "Mistral",
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        65_673,
        32_768,
    ),
    (
        "xAI",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        537_812,
        131_072,
    ),
    (
        "OpenRouter",
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens.",
        40_000,
        32_768,
    ),
    ("Groq", "Please reduce the length of the messages or completion.", None, None),
    ("Fireworks", "The prompt is too long: 9000, model maximum context length: 8192", 9000, 8192),
    (
        "Together",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens "
        "and 100 `max_new_tokens`",
        5000,
        4097,
    ),
    ("Copilot", "prompt token count of 9000 exceeds the limit of 8192", 9000, 8192),
    (
        "Moonshot",
        "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
        9000,
        8192,
    ),
    ("Cerebras", "Please reduce it. Current length is 9000 while limit is 8192", 9000, 8192),
    ("Qwen", "Range of input length should be [1, 129024]", None, 129_024),
    ("Z.ai", "Prompt exceeds max length", None, None),
    ("Bedrock", "Input is too long for requested model.", None, None),
    ("MiniMax", "invalid params, context window exceeds limit (2013)", None, None),
]
NAMES = [message[0] for message in MESSAGES]


@pytest.mark.parametrize(("server", "message", "tokens", "window"), MESSAGES, ids=NAMES)
def test_the_message_of_each_server_is_recognised_with_its_numbers(
    server: str, message: str, tokens: int | None, window: int | None
) -> None:
    for status in (None, 400, 500):
        assert find_overflow({}, message, status) == ContextOverflow(tokens, window), server


@pytest.mark.parametrize(
    ("error", "found"),
    [
        ({"code": "context_length_exceeded"}, ContextOverflow()),
        (
            {"type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096},
            ContextOverflow(9000, 4096),
        ),
        ({"type": "exceed_context_size_error", "n_prompt_tokens": "many", "n_ctx": None}, ContextOverflow()),
        ({"code": {"odd": []}, "type": ["context"]}, None),
    ],
)
def test_the_fields_of_an_error_count_too(error: dict[str, Any], found: ContextOverflow | None) -> None:
    assert find_overflow(error, "No.", 400) == found


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ("Rate limit reached for m: limit 6000 tokens per minute (TPM), requested 9000.", 413),
        ("Request too large for model m on tokens per minute (TPM): Limit 6000, Requested 9000", 413),
        ("Too many tokens, please wait before trying again. Throttled.", 400),
        ("This model's maximum context length is 8192 tokens.", 429),
        ("Prompt is too long for your key.", 403),
        ("temperature must be at most 2", 400),
        ("max_tokens must be positive", 400),
        ("Unknown parameter: context.", 400),
    ],
)
def test_other_errors_are_none(message: str, status: int) -> None:
    assert find_overflow({}, message, status) is None


def test_a_body_that_is_too_large_is_an_overflow_whatever_the_page_says() -> None:
    assert find_overflow({}, "", 413) == ContextOverflow()


def test_a_number_that_no_window_has_is_left_out() -> None:
    assert find_overflow({}, f"maximum context length is {'9' * 500} tokens", 400) == ContextOverflow()
