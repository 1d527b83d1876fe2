"""OpenAI. Sources: platform.openai.com API reference (chat, responses, background mode)."""

from gateway_app.config.presets.facts import Preset, ReasoningReturn

OPENAI = Preset(
    name="openai",
    title="OpenAI",
    base_url="https://api.openai.com/v1",
    needs_key=True,
    limit_field="max_completion_tokens",
    takes_unknown_fields=False,
    call_id_pattern=r".{1,40}",  # 400 string_above_max_length
    reasoning_return=ReasoningReturn.NEVER,
    takes_system_items=True,
    resumes_background=True,
    takes_files=True,
)
