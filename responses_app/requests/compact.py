"""``POST /v1/responses/compact``: from a JSON object to an admission."""

from typing import Any

from responses_app.http.principals import Principal
from responses_app.models import Kind
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests import create
from responses_app.requests.fields import optional, read_fields, without_nulls
from responses_app.requests.ignored_items import ignored_in_items
from responses_app.requests.input_items import is_kept, read_input
from responses_app.requests.model_name import resolve_model
from responses_app.requests.tools import is_own_call
from responses_app.services.lifecycle.admission import Admission

NAMES = ("instructions", "previous_response_id", "prompt_cache_key", "service_tier", "store")
# Read as they are where a response is created.
ECHOED = {name: create.ECHOED[name] for name in NAMES}
FIELDS = ECHOED | {
    "input": create.FIELDS["input"],
    "model": optional(create.FIELDS["model"]).described("null is the default agent."),
}


def read_compact(body: dict[str, Any], principal: Principal) -> Admission:
    """``model`` is required, but may be null."""
    if "model" not in body:
        raise InvalidRequest("model is required.", param="model", code="missing_required_parameter")
    given = without_nulls(body)
    echo = read_fields(ECHOED, given)
    model = resolve_model(given.get("model"), principal)
    if "input" not in given and "previous_response_id" not in given:
        raise InvalidRequest(
            "Send input, previous_response_id or both: there is nothing to compact.",
            param="input",
            code="missing_required_parameter",
        )
    items: list[Item] = []
    if "input" in given:
        items = read_input(given["input"], principal.owner_id)
    ignored = sorted(given.keys() - FIELDS.keys())
    for index, item in enumerate(items):
        if is_kept(item) and not is_own_call(item):
            ignored.append(f"input[{index}] ({item['type']})")
    ignored += ignored_in_items(items, "input")
    return Admission(
        owner_id=principal.owner_id,
        requested_by=principal.actor,
        authority=principal.authority,
        model=model,
        items=items,
        echo=echo,
        request=create.without_input(body),
        ignored=tuple(ignored),
        kind=Kind.COMPACTION,
        previous_id=echo.get("previous_response_id"),
        is_stored=echo.get("store", True),
    )
