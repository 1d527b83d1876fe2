from django.urls import path

from gateway_app.api.platforms.views import PlatformEventsView

urlpatterns = [
    path("api/platforms/<str:platform>/events", PlatformEventsView.as_view()),
]
