"""The call of a model, put together from the request, the conversation and the agent."""

from collections.abc import Sequence
from datetime import UTC

from gateway_app.agent.budget import Budget
from gateway_app.agent.model_call import ModelCall
from gateway_app.runtime.additional_tools import OfferedTools
from gateway_app.runtime.agents import Agent
from gateway_app.runtime.file_texts import with_file_texts
from gateway_app.runtime.notes import turn_facts
from gateway_app.runtime.turn_budget import compact_threshold
from gateway_app.runtime.turn_items import TurnItems
from gateway_app.runtime.turn_request import TurnRequest, read_instructions
from responses_app.models import Response
from responses_app.protocol.items import all_call_ids
from responses_app.services.lifecycle.claim import FreshTurn


def build_call(
    row: Response,
    request: TurnRequest,
    fresh: FreshTurn | None,
    agent: Agent,
    items: TurnItems,
    budget: Budget,
    missing_servers: Sequence[str],
) -> ModelCall:
    tools = request.fields.get("tools")
    own_tools = agent.tools(tools, row.client_tools)
    # The day of the response, so that all attempts send the same.
    core_prompt = agent.core_prompt(row.created_at.astimezone(UTC).date(), own_tools)
    facts = turn_facts(row, fresh, own_tools, missing_servers, agent.window().tokens)
    instructions = read_instructions(row, request, fresh, core_prompt, agent.instructions, facts)
    offered = OfferedTools(agent, tools, items.visible, row.client_tools)
    return ModelCall(
        model=row.model,
        items=offered.other_items,
        instructions=instructions,
        core_prompt=core_prompt,
        tools=offered.of_server(),
        used_call_ids=items.progress.used_call_ids
        | all_call_ids(items.older.items + request.new_input),
        client_tools=offered.of_client(),
        hosted_tools=offered.of_upstream(),
        extras=request.upstream_fields(),
        chat_extras=request.chat_fields(),
        tool_choice=request.fields.get("tool_choice") or "auto",
        max_output_tokens=request.fields.get("max_output_tokens"),
        max_tool_calls=request.fields.get("max_tool_calls"),
        max_iterations=agent.max_iterations,
        compact_threshold=compact_threshold(request, agent, budget),
        budget=budget,
        parameters=request.model_parameters(),
        cut_at=items.progress.cut_at,
        resume=items.progress.resume,
        is_stored=row.is_stored,
        file_texts=with_file_texts,
    )
