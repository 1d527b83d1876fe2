from django.urls import path

from gateway_app.api.discovery import views

urlpatterns = [
    path("v1/capabilities", views.CapabilitiesView.as_view()),
    path("v1/toolsets", views.ToolsetsView.as_view()),
]
