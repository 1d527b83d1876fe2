"""Mistral. Sources: mistralai/client-python; eca#231, gptel#1203, datapizza-ai#98, litellm#30835.

It counts tokens in streams without being asked, and refuses `stream_options` (litellm#8978).
"""

from gateway_app.config.presets.facts import Continuation, Preset, ReasoningReturn

MISTRAL = Preset(
    name="mistral",
    title="Mistral",
    base_url="https://api.mistral.ai/v1",
    needs_key=True,
    takes_unknown_fields=False,  # 422 for any of them
    refused_fields=frozenset(
        (
            "stream_options",
            "seed",  # here it is random_seed
            "logit_bias",
            "logprobs",
            "top_logprobs",
            "service_tier",
            "user",
            "prompt_cache_key",
            "safety_identifier",
            "verbosity",
        )
    ),
    call_id_pattern=r"[A-Za-z0-9]{9}",
    needs_assistant_after_tool=True,  # code 3230: a user message after a tool's
    reasoning_return=ReasoningReturn.NEVER,  # reasoning_content gives 422
    continuation=Continuation.PREFIX,
    echoes_prefix=True,
)
