"""Profiles by name, from the database and from ``config.yaml``."""

from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from responses_app.agent_profiles import AgentProfile
from responses_app.models import ApiKey, Profile
from responses_app.models.compiled import CompiledQuery
from responses_app.models.recent import RecentlyRead

DEFAULT = "default"
DEFAULT_NAMES = (DEFAULT, "hermes-agent")


def default_model() -> str:
    """The model name of the default agent."""
    return str(settings.API_SERVER_MODEL_NAME)


def is_default(model: str) -> bool:
    return model in DEFAULT_NAMES or model == default_model()


def find_profile(model: str) -> AgentProfile | None:
    """The profile of this model; an unknown name means the default agent, which may have none."""
    if is_default(model):
        return _named(DEFAULT) or _named(model)
    return _named(model) or _named(DEFAULT)


def profile_names() -> list[str]:
    """All profiles but the default agent."""
    return _without_default(_known())


def models_of_key(key_id: int | None) -> list[str]:
    """All models, or exactly the profiles that the key is bound to; the default comes first."""
    bound = None
    if key_id is not None:
        bound = _recent_bounds.get(key_id, partial(_bound_to, key_id))
    if bound is None:
        return [default_model(), *profile_names()]
    usable = bound & _known()
    models = _without_default(usable)
    if len(models) < len(usable):
        models.insert(0, default_model())
    return models


def forget_names() -> None:
    _recent_names.forget()
    _recent_bounds.forget()


def _without_default(names: set[str]) -> list[str]:
    return sorted(name for name in names if not is_default(name))


def _known() -> set[str]:
    names = _recent_names.get(None, _stored_names)
    return names | set(settings.HERMES_PROFILES)


def _stored_names() -> set[str]:
    return {name for (name,) in _all_enabled.rows()}


def is_any_upstream_of_responses() -> bool:
    """Does any model of this server understand items that only the Responses API has?"""
    models = list(settings.HERMES_MODELS)
    for profile in settings.HERMES_PROFILES.values():
        models.append(profile.upstream)
    return any(_is_responses_upstream(model) for model in models)


def _is_responses_upstream(model: dict[str, Any]) -> bool:
    return model.get("api_mode") == "codex_responses" and model.get("provider") != "builtin"


def _bound_to(key_id: int) -> set[str] | None:
    """A key is bound to rows; an entry of config.yaml counts where a row has its name."""
    key = ApiKey.objects.filter(pk=key_id, is_limited=True)
    if not key.exists():
        return None
    return set(key.values_list("profiles__name", flat=True))


def _named(name: str) -> AgentProfile | None:
    configured: AgentProfile | None = settings.HERMES_PROFILES.get(name)
    if configured is not None:
        return configured
    return _recent_profiles.get(name, partial(_stored, name))


def _stored(name: str) -> AgentProfile | None:
    row: Profile | None = _enabled_profile.instance(name)
    if row is None:
        return None
    return profile_of_row(row)


def _enabled_with_name(name: str) -> QuerySet[Profile]:
    return Profile.objects.filter(name=name, is_enabled=True)


def _enabled_names() -> QuerySet[Profile, Any]:
    return Profile.objects.filter(is_enabled=True).values_list("name")


_enabled_profile = CompiledQuery(_enabled_with_name)
_all_enabled = CompiledQuery(_enabled_names)
_recent_profiles: RecentlyRead[str, AgentProfile | None] = RecentlyRead()
_recent_names: RecentlyRead[None, set[str]] = RecentlyRead()
_recent_bounds: RecentlyRead[int, set[str] | None] = RecentlyRead()  # by the ids of keys


def profile_of_row(row: Profile) -> AgentProfile:
    fields = {"provider": row.provider, "base_url": row.base_url, "model": row.upstream_model}
    named = {name: value for name, value in fields.items() if value}
    toolset = None
    if row.toolset is not None:
        toolset = tuple(row.toolset)
    fallbacks = row.fallback_models
    if fallbacks == []:  # the default of the field: not set
        fallbacks = None
    return AgentProfile(
        name=row.name,
        location=f"Profile {row.name}",
        instructions=row.instructions,
        core_prompt=row.core_prompt.strip(),
        toolset=toolset,
        tool_items=row.tool_items,
        client_tools=row.client_tools,
        approval_wait=row.approval_wait,
        upstream=row.model_options | named,
        fallback_models=fallbacks,
        context_window=row.context_window or 0,
        compact_share=row.compact_share,
        max_iterations=row.max_iterations or 0,
    )
