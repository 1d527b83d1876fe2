"""llama.cpp's own server. Sources: ggml-org/llama.cpp tools/server/README.md, server-common.cpp."""

from gateway_app.config.presets.facts import Continuation, FormatForm, Preset

LLAMACPP = Preset(
    name="llamacpp",
    title="llama.cpp (llama-server)",
    base_url="http://127.0.0.1:8080/v1",
    takes_named_choice=False,  # an object counts as "auto": ggml-org/llama.cpp#26535
    format_forms=(FormatForm.JSON_SCHEMA, FormatForm.OBJECT_WITH_SCHEMA, FormatForm.INSTRUCTIONS),
    continuation=Continuation.TRAILING,
)
