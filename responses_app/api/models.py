"""``/v1/models``: the models that a key may use."""

import time
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from responses_app.api.authentication import principal_of
from responses_app.protocol.errors import ModelNotFound
from responses_app.requests.model_name import model_names


class ModelsView(APIView):
    def get(self, request: Request) -> JsonAnswer:
        names = model_names(principal_of(request))
        return JsonAnswer({"object": "list", "data": [_model(name) for name in names]})


class ModelView(APIView):
    def get(self, request: Request, model: str) -> JsonAnswer:
        if model not in model_names(principal_of(request)):
            raise ModelNotFound(model)
        return JsonAnswer(_model(model))


def _model(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "hermes",
        "permission": [],
        "root": name,
        "parent": None,
    }
