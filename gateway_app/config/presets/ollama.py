"""Ollama. Sources: ollama/ollama openai/openai.go, server/{routes,prompt}.go, docs/api/openai-compatibility.mdx."""

from gateway_app.config.presets.facts import Preset

OLLAMA = Preset(
    name="ollama",
    title="Ollama",
    base_url="http://127.0.0.1:11434/v1",
    reasoning_field="reasoning",  # reasoning_content is not read
    truncates_silently=True,
)
