"""Whether an upstream's error states that the request does not fit into the model's context."""

import re
from collections.abc import Mapping
from typing import Any

from gateway_app.agent.model_faults import ContextOverflow
from responses_app.protocol.failures import TOO_LONG

MAX_TOKENS = 1_000_000_000  # a larger number is no count of tokens
# Values of `code` and `type`.
_CODES = frozenset(
    (
        TOO_LONG,
        "exceed_context_size_error",  # llama-server
        "model_context_window_exceeded",  # Anthropic
        "context_window_exceeded",
        "request_too_large",  # Anthropic, 413
        "max_context_length_exceeded",
    )
)
# A rate limit counts tokens too. A shorter request is no remedy for it.
_RATE_LIMIT = re.compile(
    r"rate.?limit|per[ -](?:minute|hour|day)|\bTPM\b|too many requests|throttl|quota"
    r"|频率|并发|限流|限额|配额|每分钟|每天|余额|次数",
    re.IGNORECASE,
)
_N = r"(?:about |of |only |: ?)*\(?[\d,]+\)?"
_WINDOW = _N.replace(r"[\d,]+", r"(?P<window>[\d,]+)")
_TOKENS = _N.replace(r"[\d,]+", r"(?P<tokens>[\d,]+)")
# The servers that use each form. Where a form may have the numbers, a longer one comes first.
_FORMS = (
    # vLLM, whose first number behind the window is that of the tokens to generate
    rf"maximum context length is {_WINDOW} tokens\. However, you requested [\d,]+ output tokens "
    rf"and your prompt contains (?:at least )?{_TOKENS} input tokens",
    rf"maximum context length is {_WINDOW} tokens\. However, you requested [\d,]+ output tokens",
    # OpenAI, Azure, older vLLM, DeepSeek, OpenRouter, llama-cpp-python
    rf"maximum context length is {_WINDOW}\D{{1,120}}(?:resulted in|requested|has) {_TOKENS}",
    rf"maximum context length is {_WINDOW}",
    # SGLang
    rf"input {_TOKENS} ?tokens?\)? is longer than the model'?s context length {_WINDOW}",
    rf"exceeds the model'?s maximum context length {_WINDOW}\D{{1,80}}total {_TOKENS}",
    # vLLM
    rf"prompt \(length {_TOKENS}\) is longer than the maximum model length {_WINDOW}",
    rf"input length {_TOKENS} exceeds (?:the )?model'?s maximum context length {_WINDOW}",
    r"longer than the (?:maximum model|model'?s context) length",
    # llama-server
    rf"request {_TOKENS} ?tokens?\)? exceeds the available context size {_WINDOW}",
    r"exceeds? the available context size",
    # llama-cpp-python
    rf"requested tokens {_TOKENS} exceed context window {_WINDOW}",
    # LM Studio
    rf"n_keep:? {_TOKENS} ?>=? ?n_ctx:? {_WINDOW}",
    rf"keep the first {_TOKENS} tokens.{{1,80}}context length {_WINDOW}",
    r"greater than the context length",
    # Ollama
    r"exceed(?:s|ed) (?:the |max(?:imum)? )?context length",
    # Anthropic, Fireworks
    rf"prompt is too long: {_TOKENS} tokens > {_WINDOW} maximum",
    rf"exceed context limit: {_TOKENS} \+ [\d,]+ > {_WINDOW}",
    rf"prompt is too long: {_TOKENS}, model maximum context length{_WINDOW}",
    # Gemini
    rf"input token count {_TOKENS} exceeds the maximum number of tokens allowed {_WINDOW}",
    r"exceeds the maximum number of tokens",
    # Mistral
    rf"contains {_TOKENS} tokens.{{1,40}}too large for model with {_WINDOW} maximum context",
    # xAI
    rf"maximum prompt length is {_WINDOW} but the request contains {_TOKENS} tokens",
    # Text Generation Inference, Together
    rf"`inputs` tokens \+ `max_new_tokens` must be <= {_WINDOW}\. Given: {_TOKENS} `inputs` tokens",
    # GitHub Copilot
    rf"prompt token count {_TOKENS} exceeds the limit {_WINDOW}",
    # Moonshot
    rf"exceeded model token limit{_WINDOW}\D{{1,20}}requested{_TOKENS}",
    r"exceeded model token limit",
    # Cerebras
    rf"current length is {_TOKENS} while limit is {_WINDOW}",
    # Qwen (DashScope)
    r"range of input length should be \[\d+, ?(?P<window>\d+)\]",
    # Z.ai
    r"tokens in request more than max tokens allowed",
    r"prompt exceeds max length",
    # Qwen, Zhipu, Moonshot and others, in Chinese
    r"(?:上下文|输入|请求|提示词?|消息|prompt|token)[^。，,]{0,20}(?:超过|超出|过长|太长|超长)",
    r"(?:超过|超出)\S{0,20}(?:上下文|最大长度|最大输入|(?:token|长度)\S{0,4}(?:限制|上限))",
    # others
    r"(?:maximum|available) context",
    r"context (?:length|window|size)\W{1,5}(?:\w{1,20}\W{1,5}){0,3}exceed",
    r"exceed\w{0,8} (?:\S{1,40} ){0,5}context",
    r"(?:prompt|input|conversation|request) (?:is|was) too long",
    r"prompt too long",
    r"reduce the length of the (?:messages|prompt|input)",
    r"context_length_exceeded|too many tokens|token limit exceeded",
)
_PATTERNS = tuple(re.compile(form, re.IGNORECASE | re.DOTALL) for form in _FORMS)


def find_overflow(
    error: Mapping[str, Any], text: str, status: int | None = None
) -> ContextOverflow | None:
    """None for any other error; ``text`` is the message, or both ends of a very long one."""
    if status in (401, 402, 403, 429) or _RATE_LIMIT.search(text):
        return None
    found = _in_text(text)
    is_named = str(error.get("code")) in _CODES or str(error.get("type")) in _CODES
    if found is None and not is_named and status != 413:
        return None
    found = found or ContextOverflow()
    return ContextOverflow(
        _count(error.get("n_prompt_tokens")) or found.tokens,
        _count(error.get("n_ctx")) or found.window,
    )


def _in_text(text: str) -> ContextOverflow | None:
    for pattern in _PATTERNS:
        match = pattern.search(text)
        if match is not None:
            numbers = match.groupdict()
            return ContextOverflow(_count(numbers.get("tokens")), _count(numbers.get("window")))
    return None


def _count(given: Any) -> int | None:
    digits = str(given).replace(",", "")
    if not digits.isdecimal() or len(digits) > len(str(MAX_TOKENS)):
        return None
    return int(digits) or None
