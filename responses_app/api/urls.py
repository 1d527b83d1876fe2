from django.urls import path

from responses_app.api import (
    approvals,
    conversations,
    lists,
)
from responses_app.api import (
    input_tokens as tokens,
)
from responses_app.api import (
    responses as views,
)

urlpatterns = [
    path("health", views.HealthView.as_view()),
    path("v1/health", views.HealthView.as_view()),
    path("v1/models", views.ModelsView.as_view()),
    path("v1/models/<path:model>", views.ModelView.as_view()),
    path("v1/responses", lists.ResponsesView.as_view()),
    path("v1/responses/input_tokens", tokens.InputTokensView.as_view()),
    path("v1/responses/compact", views.StreamedView.as_view()),
    path("v1/responses/<str:response_id>", views.ResponseView.as_view()),
    path("v1/responses/<str:response_id>/approval", approvals.ApprovalView.as_view()),
    path("v1/responses/<str:response_id>/cancel", views.CancelView.as_view()),
    path("v1/responses/<str:response_id>/input_items", lists.InputItemsView.as_view()),
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
