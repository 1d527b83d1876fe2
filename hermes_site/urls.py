from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("admin/", admin.site.urls),
    path("", include("responses_app.api.urls")),
]

handler400 = "responses_app.api.exceptions.bad_request"
handler404 = "responses_app.api.exceptions.not_found"
handler500 = "responses_app.api.exceptions.server_error"
