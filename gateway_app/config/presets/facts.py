"""What differs between model servers that speak OpenAI's protocols."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Continuation(StrEnum):
    """How a server is asked to go on with an assistant message that is not complete."""

    NOTE = "note"  # it can't: a note asks the model to go on
    TRAILING = "trailing"  # a request that ends with an assistant message continues it
    FINAL_MESSAGE = "continue_final_message"  # with a flag, and without a generation prompt
    PREFIX = "prefix"  # the last message is marked as a prefix


class ReasoningReturn(StrEnum):
    """Whether the model's reasoning goes back with its message."""

    NEVER = "never"
    OPTIONAL = "optional"
    REQUIRED = "required"  # the server refuses a message with calls that lacks it


class FormatForm(StrEnum):
    """A way to ask for an answer that follows a JSON schema."""

    JSON_SCHEMA = "json_schema"  # OpenAI's response_format
    OBJECT_WITH_SCHEMA = "object_with_schema"  # json_object, with the schema beside the type
    GUIDED_JSON = "guided_json"  # a field of its own
    JSON_OBJECT = "json_object"  # the schema is in the instructions
    INSTRUCTIONS = "instructions"  # the schema is in the instructions, and nothing else asks for it


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The facts about one kind of server; each preset is a file of this folder."""

    name: str
    title: str
    base_url: str = ""  # the default; empty: the configuration must name one
    needs_key: bool = False
    key_header: str = ""  # carries the key beside the Authorization header
    # -- requests
    limit_field: str = "max_tokens"
    takes_unknown_fields: bool = True  # top_k, min_p and others of its own
    refused_fields: frozenset[str] = frozenset()
    takes_named_choice: bool = True  # a tool_choice that names a function
    format_forms: tuple[FormatForm, ...] = (FormatForm.JSON_SCHEMA,)  # the best one first
    # -- messages
    empty_content: str | None = None  # of an assistant message that has calls and no text
    call_id_pattern: str = r".{1,64}"  # call ids must match it
    needs_assistant_after_tool: bool = False  # before the next user message
    reasoning_field: str = "reasoning_content"  # of a message that goes back
    reasoning_return: ReasoningReturn = ReasoningReturn.OPTIONAL
    # The extra_content of calls that another provider made, where the server wants some; only of
    # models whose names begin with the pattern.
    placeholder_extras: Mapping[str, Any] = field(default_factory=dict)
    placeholder_models: str = ""
    # -- content
    sees: bool | None = None  # whether its models see images; None: that depends on the model
    takes_files: bool = False  # PDF files and others, as OpenAI's `file` parts
    # -- answers
    writes_calls_as_text: bool = False  # <tool_call>{...}</tool_call> at the end of a message
    hides_stream_errors: bool = False  # an error before the first event is an empty stream
    continuation: Continuation = Continuation.NOTE
    continuation_url: str = ""  # continuations go to this address
    # A prompt that is too long is answered after its oldest part was dropped, without an error.
    truncates_silently: bool = False
    echoes_prefix: bool = False  # the continued text begins with the prefix again
    # -- the Responses API
    takes_system_items: bool = False  # also behind other items, beside the instructions
    resumes_background: bool = False  # background mode, and `starting_after` on a running response
