"""Which fields of a request are passed on to models."""

# Fields of a request that are the model's business alone.
MODEL_PARAMETERS = (
    "include",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "temperature",
    "text",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)
