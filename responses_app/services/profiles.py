"""The profile of a name: the one place that knows where profiles come from."""

from django.conf import settings

from responses_app.agent_profiles import AgentProfile
from responses_app.models import ApiKey, Profile

DEFAULT = "default"
DEFAULT_NAMES = (DEFAULT, "hermes-agent")


def default_model() -> str:
    """How the default agent is called to clients."""
    return str(settings.API_SERVER_MODEL_NAME)


def is_default(model: str) -> bool:
    return model in DEFAULT_NAMES or model == default_model()


def find_profile(model: str) -> AgentProfile | None:
    """Who answers as this model; a name nobody has means the default agent, which may have no profile."""
    if is_default(model):
        return _named(DEFAULT) or _named(model)
    return _named(model) or _named(DEFAULT)


def profile_names() -> list[str]:
    """All profiles beside the default agent."""
    return sorted(name for name in _known() if not is_default(name))


def models_of_key(key_id: int | None) -> list[str]:
    """What a key may use: everything, or exactly the profiles it is bound to; the default agent comes first."""
    bound = None if key_id is None else _bound_to(key_id)
    if bound is None:
        return [default_model(), *profile_names()]
    usable = bound & _known()
    default = [default_model()] if any(is_default(name) for name in usable) else []
    return default + sorted(name for name in usable if not is_default(name))


def _known() -> set[str]:
    rows = Profile.objects.filter(is_enabled=True).values_list("name", flat=True)
    return {*rows, *settings.HERMES_PROFILES}


def is_any_upstream_of_responses() -> bool:
    """Does any model of this server understand items that only the Responses API has?"""
    models = [
        *settings.HERMES_MODELS,
        *(profile.upstream for profile in settings.HERMES_PROFILES.values()),
    ]
    return any(
        m.get("api_mode") == "codex_responses" and m.get("provider") != "builtin" for m in models
    )


def _bound_to(key_id: int) -> set[str] | None:
    """A key's list is one of rows; an entry of config.yaml is on it where a row has its name."""
    key = ApiKey.objects.filter(pk=key_id, is_limited=True)
    return set(key.values_list("profiles__name", flat=True)) if key.exists() else None


def _named(name: str) -> AgentProfile | None:
    configured: AgentProfile | None = settings.HERMES_PROFILES.get(name)
    if configured is not None:
        return configured
    row = Profile.objects.filter(name=name, is_enabled=True).first()
    return None if row is None else profile_of_row(row)


def profile_of_row(row: Profile) -> AgentProfile:
    upstream = {"provider": row.provider, "base_url": row.base_url, "model": row.upstream_model}
    return AgentProfile(
        name=row.name,
        location=f"Profile {row.name}",
        instructions=row.instructions,
        toolset=tuple(row.toolset),
        tool_items=row.tool_items,
        upstream={name: value for name, value in upstream.items() if value},
        fallback_models=row.fallback_models,
        context_window=row.context_window or 0,
    )
