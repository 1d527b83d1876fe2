from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("responses_app.api.urls")),
    path("", include("gateway_app.chat.urls")),
    path("", include("gateway_app.runs.urls")),
    path("", include("gateway_app.sessions.urls")),
    path("", include("gateway_app.discovery.urls")),
    path("", include("gateway_app.monitoring.urls")),
    path("", include("gateway_app.dashboard.urls")),
    path("", include("gateway_app.openapi.urls")),
]

handler400 = "responses_app.api.exceptions.bad_request"
handler404 = "responses_app.api.exceptions.not_found"
handler500 = "responses_app.api.exceptions.server_error"
