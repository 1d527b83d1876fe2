from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from gateway_app.operations.dashboard import chat, live, platforms, views

urlpatterns = [
    path("", views.dashboard, name="dashboard"),
    path("dashboard/now", views.now_part, name="dashboard-now"),
    path("dashboard/past", views.past_part, name="dashboard-past"),
    path("live/<str:response_id>", live.live_page, name="live"),
    path("live/<str:response_id>/cancel", live.cancel, name="live-cancel"),
    path("live/<str:response_id>/approval", live.approve, name="live-approval"),
    path("platforms", platforms.platforms_page, name="platforms"),
    path("chat", chat.chat_page, name="chat"),
    path("chat/token", chat.token, name="chat-token"),
    path("chat/<str:session_id>", chat.chat_page, name="chat-session"),
    path("chat/<str:session_id>/turns", chat.later_turns, name="chat-turns"),
    path("favicon.ico", RedirectView.as_view(url=static("dashboard/icon.svg"))),
]
