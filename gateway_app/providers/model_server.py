"""What a model's server reports about itself: the context window, and which server it is."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gateway_app.config.models import Model
from gateway_app.config.presets.registry import PRESETS

if TYPE_CHECKING:
    from httpx2 import Client

# Names of the field in lists of models: vLLM and SGLang, OpenRouter, Mistral, Groq.
WINDOW_FIELDS = (
    "max_model_len",
    "context_length",
    "max_context_length",
    "context_window",
    "n_ctx",
)
# `owned_by` of the entries, and the preset of the server that writes it.
OWNERS = {"llamacpp": "llamacpp", "vllm": "vllm", "library": "ollama", "me": "llama-cpp-python"}


@dataclass(frozen=True)
class Report:
    window: int = 0  # in tokens; 0 means that the server does not report it
    preset: str = ""  # the one that fits the server; empty where it can't be recognised


def ask_server(model: Model, timeout_secs: float) -> Report:
    """Errors count as no report: the calls to the model explain them better."""
    import httpx2  # comes with the SDK, which only a real upstream needs

    query = model["options"].get("query")
    with httpx2.Client(
        headers=upstream_headers(model), params=query, timeout=timeout_secs
    ) as client:
        entry = _listed_entry(client, model)
        window = _window_of_entry(entry) or _window_of_server(client, model)
    return Report(window, _recognised(model, entry))


def upstream_headers(model: Model) -> dict[str, str]:
    """Those of every request to the model's server."""
    headers = dict(model["options"].get("extra_headers") or {})
    key = model["api_key"]
    if key:
        headers["Authorization"] = f"Bearer {key}"
        key_header = PRESETS[model["provider"]].key_header
        if key_header:
            headers[key_header] = key
    return headers


def is_listed(model: str, names: list[str]) -> bool:
    """Ollama lists a name with its tag, Gemini with its folder, and both take it without."""
    return any(name in names for name in (model, f"{model}:latest", f"models/{model}"))


def _listed_entry(client: "Client", model: Model) -> dict[str, Any]:
    body = _get(client, f"{model['base_url'].rstrip('/')}/models")
    for entry in _entries(body, "data"):
        if is_listed(model["model"], [str(entry.get("id"))]):
            return entry
    return {}


def _window_of_entry(entry: dict[str, Any]) -> int:
    meta = entry.get("meta")
    if isinstance(meta, dict) and _tokens(meta.get("n_ctx")):
        return _tokens(meta["n_ctx"])
    for name in WINDOW_FIELDS:
        if _tokens(entry.get(name)):
            return _tokens(entry[name])
    return 0


def _window_of_server(client: "Client", model: Model) -> int:
    """Ollama and LM Studio report the window of a loaded model beside the compatible API."""
    root = model["base_url"].rstrip("/").removesuffix("/v1")
    if model["provider"] == "ollama":
        for entry in _entries(_get(client, f"{root}/api/ps"), "models"):
            if is_listed(model["model"], [str(entry.get("name"))]):
                return _tokens(entry.get("context_length"))
    if model["provider"] == "llamacpp":
        props = _get(client, f"{root}/props")
        if isinstance(props, dict) and isinstance(props.get("default_generation_settings"), dict):
            return _tokens(props["default_generation_settings"].get("n_ctx"))
    if model["provider"] == "lmstudio":
        for entry in _entries(_get(client, f"{root}/api/v1/models"), "models"):
            if entry.get("key") == model["model"]:
                return _window_of_instance(entry)
    return 0


def _window_of_instance(entry: dict[str, Any]) -> int:
    for instance in _entries(entry, "loaded_instances"):
        config = instance.get("config")
        if isinstance(config, dict):
            return _tokens(config.get("context_length"))
    return 0


def _recognised(model: Model, entry: dict[str, Any]) -> str:
    host = urlsplit(model["base_url"]).hostname or ""
    for preset in PRESETS.values():
        known_host = urlsplit(preset.base_url).hostname
        if preset.needs_key and host == known_host:
            return preset.name
    if host.endswith(".openai.azure.com"):
        return "azure"
    return OWNERS.get(str(entry.get("owned_by")), "")


def _get(client: "Client", url: str) -> Any:
    import httpx2

    try:
        response = client.get(url)
        if response.status_code == 200:
            return response.json()
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return None  # most servers lack most of these routes
    return None


def _entries(body: Any, name: str) -> Iterator[dict[str, Any]]:
    if isinstance(body, dict) and isinstance(body.get(name), list):
        for entry in body[name]:
            if isinstance(entry, dict):
                yield entry


def _tokens(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    return 0
