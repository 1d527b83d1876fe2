"""What is stored: one file per family of models; their querysets hold the guarded moves."""

from responses_app.models.conversations import Conversation, ConversationItem
from responses_app.models.idempotency import (
    KEY_LIFETIME,
    MAX_KEY_CHARS,
    RETRY_LIFETIME,
    IdempotencyKey,
)
from responses_app.models.input_items import InputItem, opening_excerpt, question_excerpt
from responses_app.models.keys import ApiKey, hash_key
from responses_app.models.notes import Note, NoteKind
from responses_app.models.platform_chats import (
    MAX_PLATFORM_ID_CHARS,
    PlatformChat,
    PlatformState,
    PlatformStatus,
)
from responses_app.models.platform_messages import (
    InboxMessage,
    InboxStatus,
    OutboxMessage,
    OutboxStatus,
)
from responses_app.models.profiles import Profile
from responses_app.models.responses import (
    Kind,
    Response,
    ResponseQuerySet,
    is_held,
    is_parked,
    work_states,
)
from responses_app.models.search import SearchEntry
from responses_app.models.segments import EventSegment
from responses_app.models.sessions import (
    MAX_SESSION_ID_CHARS,
    MAX_SESSION_KEY_CHARS,
    MAX_TITLE_CHARS,
    Session,
    SessionQuerySet,
    TurnPolicy,
)
from responses_app.models.tool_events import (
    OPEN_CALLS,
    UNKNOWN_TOOL,
    ApprovalGrant,
    ApprovalMode,
    Approver,
    Decision,
    ToolEvent,
    ToolStatus,
    decisions_for,
)

__all__ = [
    "KEY_LIFETIME",
    "MAX_KEY_CHARS",
    "MAX_PLATFORM_ID_CHARS",
    "MAX_SESSION_ID_CHARS",
    "MAX_SESSION_KEY_CHARS",
    "MAX_TITLE_CHARS",
    "OPEN_CALLS",
    "RETRY_LIFETIME",
    "UNKNOWN_TOOL",
    "ApiKey",
    "ApprovalGrant",
    "ApprovalMode",
    "Approver",
    "Conversation",
    "ConversationItem",
    "Decision",
    "EventSegment",
    "IdempotencyKey",
    "InboxMessage",
    "InboxStatus",
    "InputItem",
    "Kind",
    "Note",
    "NoteKind",
    "OutboxMessage",
    "OutboxStatus",
    "PlatformChat",
    "PlatformState",
    "PlatformStatus",
    "Profile",
    "Response",
    "ResponseQuerySet",
    "SearchEntry",
    "Session",
    "SessionQuerySet",
    "ToolEvent",
    "ToolStatus",
    "TurnPolicy",
    "decisions_for",
    "hash_key",
    "is_held",
    "is_parked",
    "opening_excerpt",
    "question_excerpt",
    "work_states",
]
