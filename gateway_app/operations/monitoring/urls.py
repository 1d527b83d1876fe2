from django.urls import path

from gateway_app.operations.monitoring.views import DetailedHealthView, MetricsView, StatusView

urlpatterns = [
    path("health/detailed", DetailedHealthView.as_view()),
    path("api/status", StatusView.as_view()),
    path("metrics", MetricsView.as_view()),
]
