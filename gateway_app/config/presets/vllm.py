"""vLLM. Sources: vllm-project/vllm entrypoints/openai/chat_completion/protocol.py, serving.py."""

from gateway_app.config.presets.facts import Continuation, FormatForm, Preset

VLLM = Preset(
    name="vllm",
    title="vLLM",
    base_url="http://127.0.0.1:8000/v1",
    format_forms=(FormatForm.JSON_SCHEMA, FormatForm.GUIDED_JSON, FormatForm.INSTRUCTIONS),
    reasoning_field="reasoning",
    continuation=Continuation.FINAL_MESSAGE,
)
