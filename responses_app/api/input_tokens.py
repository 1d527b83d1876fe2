"""``POST /v1/responses/input_tokens``: what a request would cost, without making it."""

from typing import Any

from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView
from responses_app.protocol.errors import NotFound, PreviousResponseNotFound
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.requests.client_options import read_client_options
from responses_app.requests.create import read_create
from responses_app.requests.headers import IGNORED_HEADER, ignored_value
from responses_app.services.conversations import find_conversation
from responses_app.services.history.chain_values import inherited_instructions
from responses_app.services.history.compaction import expand
from responses_app.services.history.context import History, history_of, read_context
from responses_app.services.history.item_references import resolve_references
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lookup import find_response


class InputTokensView(ApiView):
    def post(self, request: ApiRequest) -> Response:
        given: dict[str, Any] = {"input": ""}
        for name, value in request.data.items():
            if value is not None:
                given[name] = value
        chosen = read_client_options(request.headers.get)
        admission = read_create(given, request.auth, chosen=chosen).admission
        previous_id, history = _history(admission)
        newer = expand(admission.owner_id, resolve_references(admission.owner_id, admission.items))
        items = newer.items
        if not newer.replaces_all:
            items = read_context(admission.owner_id, history).items + items
        instructions = admission.echo.get("instructions")
        if instructions is None:
            instructions = inherited_instructions(previous_id)
        estimated = estimate_tokens(items, instructions, admission.echo.get("tools", []))
        tokens = admission.limits.tokens(estimated)
        headers = {}
        if admission.ignored:
            headers[IGNORED_HEADER] = ignored_value(admission.ignored)
        counted = {"object": "response.input_tokens", "input_tokens": tokens}
        return Response(counted, headers=headers)


def _history(admission: Admission) -> tuple[str | None, History]:
    """The turn that the request continues, and the history it continues from."""
    if admission.brings_history:
        return None, history_of(None, None)
    if admission.conversation is not None:
        conversation = find_conversation(admission.owner_id, admission.conversation)
        return None, history_of(conversation.pk, None)
    if admission.previous_id is None:
        return None, history_of(None, None)
    try:
        previous_id = find_response(admission.owner_id, admission.previous_id).pk
    except NotFound:
        raise PreviousResponseNotFound(admission.previous_id) from None
    return previous_id, history_of(None, previous_id)
