"""Azure OpenAI. Sources: openai-node docs/azure.md; pydantic-ai#797, openai-python#1677."""

from gateway_app.config.presets.facts import Preset, ReasoningReturn

AZURE = Preset(
    name="azure",
    title="Azure OpenAI",
    needs_key=True,
    key_header="api-key",
    limit_field="max_completion_tokens",
    takes_unknown_fields=False,
    call_id_pattern=r".{1,40}",  # 400 string_above_max_length
    reasoning_return=ReasoningReturn.NEVER,
    takes_system_items=True,
    takes_files=True,
)
