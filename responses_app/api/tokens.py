"""``POST /v1/responses/input_tokens``: what a request would cost, without making it."""

from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from responses_app.api.authentication import principal_of
from responses_app.api.bodies import read_body
from responses_app.errors import NotFound, PreviousResponseNotFound
from responses_app.requests.create import read_create
from responses_app.services.admission import Admission
from responses_app.services.compactions import standing_context
from responses_app.services.conversations import find_conversation, items_of
from responses_app.services.history import Turn, effective_instructions, turns_before
from responses_app.services.lookup import find_response
from responses_app.services.references import resolve_references
from responses_app.tokens import estimate_tokens


class InputTokensView(APIView):
    def post(self, request: Request) -> JsonAnswer:
        principal = principal_of(request)
        given = {name: value for name, value in read_body(request).items() if value is not None}
        admission = read_create({"input": "", **given}, principal).admission
        turns = _history(admission)
        before = [item for turn in turns for item in (*turn.input, *turn.output)]
        new = resolve_references(admission.owner_id, admission.items)
        (shown,) = standing_context(admission.owner_id, before + new)
        tokens = estimate_tokens(
            shown,
            effective_instructions(admission.echo.get("instructions"), turns),
            admission.echo.get("tools", []),
        )
        return JsonAnswer({"object": "response.input_tokens", "input_tokens": tokens})


def _history(admission: Admission) -> list[Turn]:
    if admission.conversation is not None:
        conversation = find_conversation(admission.owner_id, admission.conversation)
        return [Turn("", None, items_of(conversation.pk), [])]
    if admission.previous_id is None:
        return []
    try:
        return turns_before(find_response(admission.owner_id, admission.previous_id).pk)
    except NotFound:
        raise PreviousResponseNotFound(admission.previous_id) from None
