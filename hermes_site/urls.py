from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin", RedirectView.as_view(pattern_name="admin:index")),  # as people type it
    path("admin/", admin.site.urls),
    path("", include("responses_app.api.urls")),
    path("", include("gateway_app.api.chat.urls")),
    path("", include("gateway_app.api.runs.urls")),
    path("", include("gateway_app.api.sessions.urls")),
    path("", include("gateway_app.api.discovery.urls")),
    path("", include("gateway_app.api.platforms.urls")),
    path("", include("gateway_app.operations.monitoring.urls")),
    path("", include("gateway_app.operations.dashboard.urls")),
    path("", include("gateway_app.api.schema.urls")),
]

handler400 = "responses_app.api.exceptions.bad_request"
handler404 = "responses_app.api.exceptions.not_found"
handler500 = "responses_app.api.exceptions.server_error"
