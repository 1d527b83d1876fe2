"""All dialects, in the order of the presets."""

from tests.dialects.dialect import Dialect
from tests.dialects.servers.azure import AZURE
from tests.dialects.servers.deepseek import DEEPSEEK
from tests.dialects.servers.gemini import GEMINI
from tests.dialects.servers.llama_cpp_python import LLAMA_CPP_PYTHON
from tests.dialects.servers.llamacpp import LLAMACPP
from tests.dialects.servers.lmstudio import LMSTUDIO
from tests.dialects.servers.mistral import MISTRAL
from tests.dialects.servers.ollama import OLLAMA
from tests.dialects.servers.openai import OPENAI
from tests.dialects.servers.openai_responses import OPENAI_RESPONSES
from tests.dialects.servers.openrouter import OPENROUTER
from tests.dialects.servers.vllm import VLLM

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
    OPENAI_RESPONSES,
)
DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in _ALL}
