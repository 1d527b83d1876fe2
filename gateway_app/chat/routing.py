import re

from gateway_app.chat.consumer import ChatConsumer
from responses_app.streaming.routing import StreamingRoute

CHAT_ROUTES = (StreamingRoute("POST", re.compile(r"/v1/chat/completions"), ChatConsumer.as_asgi()),)
