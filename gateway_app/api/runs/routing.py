import re

from gateway_app.api.runs.consumers import CreateRunConsumer, RunEventsConsumer
from responses_app.streaming.routing import StreamingRoute

RUNS_ROUTES = (
    StreamingRoute("POST", re.compile(r"/v1/runs"), CreateRunConsumer.as_asgi()),
    StreamingRoute(
        "GET", re.compile(r"/v1/runs/(?P<run_id>[^/]+)/events"), RunEventsConsumer.as_asgi()
    ),
)
