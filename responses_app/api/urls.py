from django.urls import path

from responses_app.api import views

urlpatterns = [
    path("health", views.HealthView.as_view()),
    path("v1/health", views.HealthView.as_view()),
    path("v1/models", views.ModelsView.as_view()),
    path("v1/models/<path:model>", views.ModelView.as_view()),
    path("v1/responses", views.ResponsesView.as_view()),
    path("v1/responses/<str:response_id>", views.ResponseView.as_view()),
    path("v1/responses/<str:response_id>/cancel", views.CancelView.as_view()),
]
