from django.apps import AppConfig


class DashboardConfig(AppConfig):
    """An app of its own for its template tags and static files; it stores nothing."""

    name = "gateway_app.operations.dashboard"
    verbose_name = "Dashboard"
