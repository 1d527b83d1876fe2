from django.urls import path

from gateway_app.api.runs import views

urlpatterns = [
    path("v1/runs", views.RunsView.as_view()),
    path("v1/runs/<str:run_id>", views.RunView.as_view()),
    path("v1/runs/<str:run_id>/events", views.RunEventsView.as_view()),
    path("v1/runs/<str:run_id>/approval", views.RunApprovalView.as_view()),
    path("v1/runs/<str:run_id>/stop", views.StopRunView.as_view()),
]
