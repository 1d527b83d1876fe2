"""OpenRouter. Sources: openrouter.ai/docs (streaming, reasoning-tokens, models)."""

from gateway_app.config.presets.facts import FormatForm, Preset

OPENROUTER = Preset(
    name="openrouter",
    title="OpenRouter",
    base_url="https://openrouter.ai/api/v1",
    needs_key=True,
    format_forms=(FormatForm.JSON_SCHEMA, FormatForm.JSON_OBJECT, FormatForm.INSTRUCTIONS),
    reasoning_field="reasoning",
    takes_files=True,
)
