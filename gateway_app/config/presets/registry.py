"""All presets by name, in the order in which the documentation lists them."""

from gateway_app.config.presets.azure import AZURE
from gateway_app.config.presets.custom import CUSTOM
from gateway_app.config.presets.deepseek import DEEPSEEK
from gateway_app.config.presets.facts import Preset
from gateway_app.config.presets.gemini import GEMINI
from gateway_app.config.presets.llama_cpp_python import LLAMA_CPP_PYTHON
from gateway_app.config.presets.llamacpp import LLAMACPP
from gateway_app.config.presets.lmstudio import LMSTUDIO
from gateway_app.config.presets.mistral import MISTRAL
from gateway_app.config.presets.ollama import OLLAMA
from gateway_app.config.presets.openai import OPENAI
from gateway_app.config.presets.openrouter import OPENROUTER
from gateway_app.config.presets.vllm import VLLM

_ALL = (
    OLLAMA,
    LLAMACPP,
    LLAMA_CPP_PYTHON,
    VLLM,
    LMSTUDIO,
    OPENROUTER,
    DEEPSEEK,
    GEMINI,
    MISTRAL,
    AZURE,
    OPENAI,
    CUSTOM,
)
PRESETS: dict[str, Preset] = {preset.name: preset for preset in _ALL}
