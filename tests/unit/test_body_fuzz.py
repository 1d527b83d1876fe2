"""Whatever the bytes are, the body reader gives an object or an error, and nothing else."""

import json
from contextlib import suppress
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.json_body import parse_object

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_an_error(raw: bytes) -> None:
    with suppress(InvalidRequest):
        assert isinstance(parse_object(raw), dict)


@given(st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=3))
def test_what_is_accepted_can_be_stored_and_sent(value: dict[str, Any]) -> None:
    try:
        accepted = parse_object(json.dumps(value).encode())
    except InvalidRequest:
        return
    encoded = orjson.dumps(accepted)
    assert b"\\u0000" not in encoded
    assert orjson.loads(encoded) == accepted
