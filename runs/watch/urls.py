"""Addresses of watch sessions, and of what their validations run."""

from __future__ import annotations

from django.urls import include, path

from runs.watch import views

watch_patterns = [
    path("watch/", views.sessions, name="watches"),
    path("watch/live", views.sessions_live, name="watches-live"),
    path("watch/resume", views.resume, name="watch-resume"),
    path("watch/<int:session_id>/", views.session, name="watch-session"),
    path("watch/<int:session_id>/live", views.session_live, name="watch-live"),
    path("watch/<int:session_id>/drain", views.drain, name="watch-drain"),
    path("watch/<int:session_id>/abort", views.abort, name="watch-abort"),
    path("watch/<int:session_id>/kill", views.kill, name="watch-kill"),
    path("watch/<int:session_id>/validate", views.validate, name="watch-validate"),
    path("validation/", views.checks, name="checks"),
]
urlpatterns = [path("projects/<int:project_id>/", include(watch_patterns))]
