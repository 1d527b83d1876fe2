"""Which items and fields of a request its model gets."""

from collections.abc import Collection, Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gateway_app.agent.context import build_items
from gateway_app.config.presets.registry import PRESETS
from gateway_app.providers.openai.extra_fields import sent_fields
from gateway_app.runtime.agents import agent_of
from responses_app.protocol.items import Item
from responses_app.requests.input_items import is_kept
from responses_app.requests.tools import is_own_call
from responses_app.services.history.compaction import expand

REASONING = "reasoning"


def unseen_items(model: str, owner_id: int, items: Sequence[Item]) -> set[int]:
    """The indexes of kept items and of reasoning that a turn of this model leaves out."""
    foreign: set[int] = set()
    reasoning: set[int] = set()
    for index, item in enumerate(items):
        if is_kept(item) and not is_own_call(item):
            foreign.add(index)
        if item["type"] == REASONING:
            reasoning.add(index)
    if foreign and _has_responses_upstream(model):
        foreign = set()
    if not reasoning:
        return foreign
    context = expand(owner_id, items).items
    visible, _ = build_items(context, settings.HERMES_TOOL_LABELS)
    visible_ids = {id(item) for item in visible}
    unseen_reasoning = {index for index in reasoning if id(items[index]) not in visible_ids}
    return foreign | unseen_reasoning


def unsent_fields(model: str, names: Collection[str], *, is_chat_request: bool = False) -> set[str]:
    """Those of the unknown fields of a request that the first model of its profile is not sent."""
    try:
        first = agent_of(model).models()[0]
    except ImproperlyConfigured:
        return set()  # the turn fails with the reason
    preset = PRESETS.get(first["provider"])
    if preset is None:
        return set(names)
    sent = sent_fields(names, preset, first["api_mode"], is_chat_request=is_chat_request)
    return set(names) - sent


def _has_responses_upstream(model: str) -> bool:
    """Such an upstream may understand items that are none of ours."""
    try:
        models = agent_of(model).models()
    except ImproperlyConfigured:
        return False  # the turn fails with the reason
    upstreams = [found for found in models if found["provider"] != "builtin"]
    return any(found["api_mode"] == "codex_responses" for found in upstreams)
