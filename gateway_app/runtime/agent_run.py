"""Connects the agent loop of a turn with its providers, its tools and its recorder."""

from collections.abc import AsyncGenerator
from functools import partial

from django.conf import settings

from gateway_app.agent.compaction import run_compaction
from gateway_app.agent.events import AgentEvent
from gateway_app.agent.loop import run_turn
from gateway_app.providers.registry import get_providers
from gateway_app.runtime.recorder import Recorder
from gateway_app.runtime.tool_runner import ToolRunner
from gateway_app.runtime.turn_context import TurnContext
from gateway_app.runtime.turn_log import TurnLog
from responses_app.models import Response
from responses_app.services.history.compaction import seal_compaction


def make_recorder(row: Response, context: TurnContext, log: TurnLog) -> Recorder:
    return Recorder(
        log.builder,
        tools={tool.name: tool for tool in context.call.tools},
        client_names={tool["name"] for tool in context.call.client_tools},
        form=row.tool_items,
        seal=partial(seal_compaction, row.owner_id),
        hidden=context.progress.hidden,
        shows_encrypted=context.call.wants_encrypted_reasoning,
    )


def start_agent(row: Response, context: TurnContext, log: TurnLog) -> AsyncGenerator[AgentEvent]:
    providers = get_providers(context.agent.models())
    retries = settings.HERMES_STREAM_RETRIES
    progress = context.progress
    if context.compaction is not None:
        return run_compaction(providers, context.compaction, retries, progress.spent_on_summaries)
    tool_runner = ToolRunner(
        row,
        context.call.tools,
        workspace=context.agent.workspace(row.owner_id),
        note=log.note,
        known=context.ledger,
        noted=progress.noted,
    )
    return run_turn(providers, context.call, tool_runner.run, progress, retries)
