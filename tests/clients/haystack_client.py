# mypy: ignore-errors
"""Two turns with Haystack: python haystack_client.py <base url> <key> <question> <next question>"""

import json
import sys

from haystack.components.generators.chat import OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

base_url, key, question, following = sys.argv[1:]
generator = OpenAIResponsesChatGenerator(
    api_key=Secret.from_token(key), model="hermes-agent", api_base_url=base_url, max_retries=0
)
messages = [ChatMessage.from_user(question)]
first = generator.run(messages)["replies"][0]
second = generator.run([*messages, first, ChatMessage.from_user(following)])["replies"][0]
print(json.dumps({"first": first.text, "second": second.text}))
