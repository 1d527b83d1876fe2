# mypy: ignore-errors
"""Two turns with CrewAI: python crewai_client.py <base url> <key> <question> <next question>"""

import json
import sys

from crewai import LLM

base_url, key, question, following = sys.argv[1:]
llm = LLM(model="openai/hermes-agent", base_url=base_url, api_key=key, api="responses", max_retries=0)
messages = [{"role": "user", "content": question}]
first = llm.call(messages)
messages += [{"role": "assistant", "content": first}, {"role": "user", "content": following}]
print(json.dumps({"first": first, "second": llm.call(messages)}))
