from django.urls import path

from responses_app.api import (
    approvals,
    conversations,
    health,
    input_tokens,
    models,
    responses,
)

urlpatterns = [
    path("health", health.HealthView.as_view()),
    path("v1/health", health.HealthView.as_view()),
    path("v1/models", models.ModelsView.as_view()),
    path("v1/models/<path:model>", models.ModelView.as_view()),
    path("v1/responses", responses.ResponsesView.as_view()),
    path("v1/responses/input_tokens", input_tokens.InputTokensView.as_view()),
    path("v1/responses/compact", responses.StreamedView.as_view()),
    path("v1/responses/<str:response_id>", responses.ResponseView.as_view()),
    path("v1/responses/<str:response_id>/approval", approvals.ApprovalView.as_view()),
    path("v1/responses/<str:response_id>/cancel", responses.CancelView.as_view()),
    path("v1/responses/<str:response_id>/input_items", responses.InputItemsView.as_view()),
    path("v1/conversations", conversations.ConversationsView.as_view()),
    path("v1/conversations/<str:conversation_id>", conversations.ConversationView.as_view()),
    path(
        "v1/conversations/<str:conversation_id>/items",
        conversations.ConversationItemsView.as_view(),
    ),
    path(
        "v1/conversations/<str:conversation_id>/items/<str:item_id>",
        conversations.ConversationItemView.as_view(),
    ),
]
