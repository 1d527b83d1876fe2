"""``POST /v1/responses/compact``: from a JSON object to an admission."""

from typing import Any

from django.conf import settings

from responses_app.http.principals import Principal
from responses_app.models.responses import Kind
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.create import ECHOED
from responses_app.requests.items import is_kept, read_input
from responses_app.requests.model_name import resolve_model
from responses_app.requests.tools import is_own_call
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.profiles import find_profile

# Read as they are where a response is made.
FIELDS = ("instructions", "previous_response_id", "prompt_cache_key", "service_tier", "store")
OTHERS = ("input", "model")


def read_compact(body: dict[str, Any], principal: Principal) -> Admission:
    """Null means the same as absent, but for the model, which must at least be named as nobody's in particular."""
    if "model" not in body:
        raise InvalidRequest("model is required.", param="model", code="missing_required_parameter")
    given = {name: value for name, value in body.items() if value is not None}
    echo = {name: ECHOED[name](given[name], name) for name in FIELDS if name in given}
    model = resolve_model(given.get("model"), principal)
    if "input" not in given and "previous_response_id" not in given:
        raise InvalidRequest(
            "Send input, previous_response_id or both: there is nothing to compact.",
            param="input",
            code="missing_required_parameter",
        )
    items = read_input(given["input"], principal.owner_id) if "input" in given else []
    profile = find_profile(model)
    kept = [index for index, item in enumerate(items) if is_kept(item) and not is_own_call(item)]
    return Admission(
        owner_id=principal.owner_id,
        requested_by=principal.actor,
        model=model,
        items=items,
        echo=echo,
        request={name: value for name, value in body.items() if name != "input"},
        ignored=(
            *sorted(given.keys() - {*FIELDS, *OTHERS}),
            *(f"input[{index}] ({items[index]['type']})" for index in kept),
        ),
        kind=Kind.COMPACTION,
        previous_id=echo.get("previous_response_id"),
        context_window=(profile and profile.context_window) or settings.HERMES_CONTEXT_LENGTH,
        is_stored=echo.get("store", True),
    )
