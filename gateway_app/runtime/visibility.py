"""Which items of a request its model is shown."""

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
    foreign = {index for index, item in enumerate(items) if is_kept(item) and not is_own_call(item)}
    unseen = set() if foreign and _speaks_responses(model) else foreign
    if not any(item["type"] == REASONING for item in items):
        return unseen
    context = expand(owner_id, items).items
    shown, _ = build_items(context, settings.HERMES_TOOL_LABELS)
    seen = {id(item) for item in shown}
    for index, item in enumerate(items):
        if item["type"] == REASONING and id(item) not in seen:
            unseen.add(index)
    return unseen


def _speaks_responses(model: str) -> bool:
    try:
        models = agent_of(model).models()
    except ImproperlyConfigured:
        return False  # the turn fails with the reason
    upstreams = [found for found in models if found["provider"] != "builtin"]
    return any(found["api_mode"] == "codex_responses" for found in upstreams)
