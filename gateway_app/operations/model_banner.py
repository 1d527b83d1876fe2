"""The lines of the start banner about models."""

from django.conf import settings

from gateway_app.config.models import describe
from responses_app.services.profiles import profile_names

SHOWN_PROFILES = 8
# An example that works as it stands, with a free server on the same machine.
REAL_MODEL = (
    "export HERMES_PROVIDER=ollama",
    "export HERMES_MODEL=the-name-of-your-model",
    "make run",
)
NO_MODEL = """\
  model        the built-in demonstration model. To use a real one, such as one of Ollama:
               {}
               {}
               {}                  (docs/models.md has the other servers and services)"""


def model_banner() -> str:
    """Queries the database: profiles may be rows."""
    lines = _models()
    names = profile_names()
    if names:
        shown = ", ".join(names[:SHOWN_PROFILES])
        if len(names) > SHOWN_PROFILES:
            shown += ", …"
        lines.append(f"  profiles     {len(names)}: {shown}")
    return "\n".join(lines)


def has_demo_model() -> bool:
    """Whether the built-in model answers, which invents everything."""
    provider: str = settings.HERMES_MODELS[0]["provider"]
    return provider == "builtin"


def _models() -> list[str]:
    first, *fallbacks = settings.HERMES_MODELS
    if has_demo_model():
        lines = [NO_MODEL.format(*REAL_MODEL)]
    else:
        lines = [f"  model        {describe(first)}"]
    label = "fallback"
    for model in fallbacks:
        lines.append(f"  {label:<12} {describe(model)}")
        label = ""
    return lines


def ignored_keys_warning() -> str:
    """Empty where every key of config.yaml has a meaning here."""
    if not settings.HERMES_IGNORED_KEYS:
        return ""
    keys = ", ".join(settings.HERMES_IGNORED_KEYS)
    return f"config.yaml: this server ignores {keys}."
