"""Connects the agent loop of a turn with its providers, its tools and its recorder."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from dataclasses import replace
from functools import partial

from django.conf import settings

from gateway_app.agent.compaction import run_compaction
from gateway_app.agent.events import AgentEvent, UpstreamPosition
from gateway_app.agent.loop import run_turn
from gateway_app.agent.model_call import CancellingProvider
from gateway_app.agent.tools import Tool
from gateway_app.providers.registry import get_providers
from gateway_app.runtime.agents import agent_of
from gateway_app.runtime.consent import asks_in_output
from gateway_app.runtime.recorder import Recorder
from gateway_app.runtime.tool_runner import ToolRunner
from gateway_app.runtime.turn_context import TurnContext
from gateway_app.runtime.turn_log import TurnLog
from gateway_app.runtime.workspace_calls import OwnerWorkspace
from responses_app.database import database
from responses_app.models import Response
from responses_app.services.history.compaction import seal_compaction
from responses_app.services.lifecycle.approval_proofs import request_item

logger = logging.getLogger(__name__)

CANCEL_SECS = 5.0  # the client has its terminal event already; the slot of the turn waits


def make_recorder(row: Response, context: TurnContext, log: TurnLog) -> Recorder:
    unseen = replace(
        context.progress.unseen,
        asks_client=_asking_tools(row, context.call.tools),
        request_item=partial(request_item, row),
    )
    return Recorder(
        log.builder,
        tools={tool.name: tool for tool in context.call.tools},
        client_names={tool["name"] for tool in context.call.client_tools},
        form=row.tool_items,
        seal=partial(seal_compaction, row.owner_id),
        unseen=unseen,
        reasoning_form=row.reasoning_form,
        shows_encrypted=context.call.wants_encrypted_reasoning,
    )


def _asking_tools(row: Response, tools: Iterable[Tool]) -> set[str]:
    """Those whose calls the client may be asked about."""
    asking: set[str] = set()
    for tool in tools:
        if tool.asks_approval is not None and asks_in_output(row, tool.approver):
            asking.add(tool.name)
    return asking


def start_agent(row: Response, context: TurnContext, log: TurnLog) -> AsyncGenerator[AgentEvent]:
    providers = get_providers(context.agent.models())
    retries = settings.HERMES_STREAM_RETRIES
    progress = context.progress
    if context.compaction is not None:
        return run_compaction(providers, context.compaction, retries, progress.spent_on_summaries)
    workspace = OwnerWorkspace(row, context.agent)
    tool_runner = ToolRunner(
        row,
        context.call,
        workspace=workspace.path_for,
        note=log.note,
        known=context.ledger,
        noted=progress.noted,
        approved=context.approved,
    )
    call = replace(context.call, text_listener=log)
    run_call = partial(workspace.run, tool_runner.run)
    return run_turn(providers, call, run_call, progress, retries, tool_runner.ask)


async def cancel_upstream(row: Response, position: UpstreamPosition) -> None:
    """Stop an answer that would run on at its upstream; it costs tokens, and has no reader."""
    try:
        async with asyncio.timeout(CANCEL_SECS):
            agent = await database.read_with_retry(agent_of, row.model)
            for provider in get_providers(agent.models()):
                if isinstance(provider, CancellingProvider):
                    await provider.cancel(position)
    except Exception as error:
        # The turn has ended: nothing that fails here may change that.
        logger.warning("%s: its upstream was not stopped (%s).", row.pk, type(error).__name__)
