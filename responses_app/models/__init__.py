from responses_app.models.conversations import Conversation, ConversationItem
from responses_app.models.idempotency import IdempotencyKey
from responses_app.models.input_items import InputItem
from responses_app.models.keys import ApiKey
from responses_app.models.profiles import Profile
from responses_app.models.responses import Response
from responses_app.models.segments import EventSegment
from responses_app.models.sessions import Session
from responses_app.models.tool_events import ApprovalGrant, ToolEvent

__all__ = [
    "ApiKey",
    "ApprovalGrant",
    "Conversation",
    "ConversationItem",
    "EventSegment",
    "IdempotencyKey",
    "InputItem",
    "Profile",
    "Response",
    "Session",
    "ToolEvent",
]
