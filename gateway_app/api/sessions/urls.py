from django.urls import path

from gateway_app.api.sessions import views
from responses_app.api.responses import StreamedView

urlpatterns = [
    path("api/sessions", views.SessionsView.as_view()),
    path("api/sessions/<str:session_id>", views.SessionView.as_view()),
    path("api/sessions/<str:session_id>/messages", views.SessionMessagesView.as_view()),
    path("api/sessions/<str:session_id>/fork", views.ForkSessionView.as_view()),
    path("api/sessions/<str:session_id>/model", views.SessionModelView.as_view()),
    path("api/sessions/<str:session_id>/chat", StreamedView.as_view()),
    path("api/sessions/<str:session_id>/chat/stream", StreamedView.as_view()),
]
