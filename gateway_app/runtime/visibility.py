"""Which items of a request its model sees."""

from collections.abc import Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gateway_app.agent.context import build_items
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


def _has_responses_upstream(model: str) -> bool:
    """Such an upstream may understand items that are none of ours."""
    try:
        models = agent_of(model).models()
    except ImproperlyConfigured:
        return False  # the turn fails with the reason
    upstreams = [found for found in models if found["provider"] != "builtin"]
    return any(found["api_mode"] == "codex_responses" for found in upstreams)
