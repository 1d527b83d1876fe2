"""The server of llama-cpp-python. Sources: abetlen/llama-cpp-python llama_chat_format.py, server/."""

from gateway_app.config.presets.facts import FormatForm, Preset, ReasoningReturn

LLAMA_CPP_PYTHON = Preset(
    name="llama-cpp-python",
    title="llama-cpp-python",
    base_url="http://127.0.0.1:8000/v1",
    format_forms=(FormatForm.OBJECT_WITH_SCHEMA, FormatForm.JSON_OBJECT, FormatForm.INSTRUCTIONS),
    empty_content="",  # its request model refuses null
    reasoning_return=ReasoningReturn.NEVER,
    hides_stream_errors=True,  # it starts the stream first: too long a prompt ends it at once
    writes_calls_as_text=True,  # templates write them; the server parses none of them
)
