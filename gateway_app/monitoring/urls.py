from django.urls import path

from gateway_app.monitoring.views import DetailedHealthView, MetricsView, status_view

urlpatterns = [
    path("health/detailed", DetailedHealthView.as_view()),
    path("api/status", status_view),
    path("metrics", MetricsView.as_view()),
]
