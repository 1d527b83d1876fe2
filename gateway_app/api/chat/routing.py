import re

from gateway_app.api.chat.consumers import ChatConsumer
from responses_app.streaming.routing import StreamingRoute

CHAT_ROUTES = (StreamingRoute("POST", re.compile(r"/v1/chat/completions"), ChatConsumer.as_asgi()),)
