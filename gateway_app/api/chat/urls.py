from django.urls import path

from gateway_app.api.chat import views

urlpatterns = [
    path("v1/chat/completions", views.CompletionsView.as_view()),
    path("v1/chat/completions/<str:completion_id>", views.CompletionView.as_view()),
    path(
        "v1/chat/completions/<str:completion_id>/messages",
        views.CompletionMessagesView.as_view(),
    ),
]
