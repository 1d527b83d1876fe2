"""DeepSeek. Sources: api-docs.deepseek.com (thinking_mode, chat_prefix_completion, json_mode)."""

from gateway_app.config.presets.facts import Continuation, FormatForm, Preset, ReasoningReturn

DEEPSEEK = Preset(
    name="deepseek",
    title="DeepSeek",
    base_url="https://api.deepseek.com",
    needs_key=True,
    format_forms=(FormatForm.JSON_OBJECT, FormatForm.INSTRUCTIONS),
    reasoning_return=ReasoningReturn.REQUIRED,
    continuation=Continuation.PREFIX,
    continuation_url="https://api.deepseek.com/beta",
    sees=False,
)
