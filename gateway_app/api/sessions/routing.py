import re

from gateway_app.api.sessions.consumers import SessionChatConsumer, SessionChatStreamConsumer
from responses_app.streaming.routing import StreamingRoute

_CHAT = r"/api/sessions/(?P<session_id>[^/]+)/chat"

SESSIONS_ROUTES = (
    StreamingRoute("POST", re.compile(_CHAT), SessionChatConsumer.as_asgi()),
    StreamingRoute("POST", re.compile(_CHAT + "/stream"), SessionChatStreamConsumer.as_asgi()),
)
