from django.urls import path

from gateway_app.api.chat import views as api

urlpatterns = [
    path("v1/chat/completions", api.CompletionsView.as_view()),
    path("v1/chat/completions/<str:completion_id>", api.CompletionView.as_view()),
]
