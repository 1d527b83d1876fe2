"""``/v1/models``: the models that a key may use."""

import time
from typing import Any

from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView
from responses_app.protocol.errors import ModelNotFound
from responses_app.requests.model_name import model_names


class ModelsView(ApiView):
    def get(self, request: ApiRequest) -> Response:
        models = [_model_payload(name) for name in model_names(request.auth)]
        return Response({"object": "list", "data": models})


class ModelView(ApiView):
    def get(self, request: ApiRequest, model: str) -> Response:
        if model not in model_names(request.auth):
            raise ModelNotFound(model)
        return Response(_model_payload(model))


def _model_payload(name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "hermes",
        "permission": [],
        "root": name,
        "parent": None,
    }
