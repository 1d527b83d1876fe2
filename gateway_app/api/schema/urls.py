from django.urls import path

from gateway_app.api.schema import views

urlpatterns = [
    path("openapi.json", views.OpenApiView.as_view()),
    path("docs", views.DocsView.as_view()),
]
