"""Whatever a chat request holds, its reader gives an admission or an error that names a field of the request."""

import re
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gateway_app.api.chat.requests import read_chat
from responses_app.http.principals import Principal
from responses_app.protocol.errors import ApiError

ODD = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "x", "function", "custom", [], {}, [None], [""], {"type": "function"}]
)
NAMES = st.sampled_from(
    [
        *("type", "function", "custom", "name", "arguments", "input", "id", "text", "content", "role", "tool_calls"),
        *("image_url", "url", "detail", "refusal", "tool_call_id", "json_schema", "schema", "allowed_tools"),
        *("tools", "mode", "format", "grammar", "parameters", "strict", "include_usage"),
    ]
)
KINDS = st.sampled_from(["function", "custom", "allowed_tools", "json_schema", "text", "image_url", "mcp", "grammar"])
TREES = st.recursive(
    ODD,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=4)
        | st.builds(lambda kind, value: {"type": kind, kind: value}, KINDS, inner)
    ),
    max_leaves=10,
)
ROLES = st.sampled_from(["user", "assistant", "system", "developer", "tool"])
MESSAGES = st.builds(lambda role, rest: {**rest, "role": role}, ROLES, st.dictionaries(NAMES, TREES, max_size=4))
FIELDS = st.sampled_from(
    [
        *("tools", "tool_choice", "response_format", "stop", "stream", "stream_options", "n", "store", "seed"),
        *("max_tokens", "max_completion_tokens", "reasoning_effort", "verbosity", "metadata", "messages", "chat"),
    ]
)
BODIES = st.builds(
    lambda messages, fields: {"messages": messages, **fields},
    st.lists(MESSAGES | TREES, min_size=1, max_size=4),
    st.dictionaries(FIELDS, TREES, max_size=3),
)


@pytest.mark.django_db
@given(BODIES, st.sampled_from([None, "s"]))
@example({"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": {}}]}, None)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_request_is_admitted_or_refused_by_name(body: dict[str, Any], session_id: str | None) -> None:
    refusal: ApiError | None = None
    try:
        admission = read_chat(body, Principal(User(pk=1)), session_id).admission
        orjson.dumps([admission.request, admission.items])
    except ApiError as error:
        refusal = error
    if refusal is not None:
        assert refusal.status == 400
        assert re.split(r"[.\[]", refusal.param or "")[0] in body
