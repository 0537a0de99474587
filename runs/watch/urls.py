"""Addresses of watch sessions, and of what their validations run."""

from __future__ import annotations

from django.urls import include, path

from runs.overview import views as overview
from runs.watch import views as watches

watch_patterns = [
    path("watch/", watches.sessions, name="watches"),
    path("watch/live", watches.sessions_live, name="watches-live"),
    path("watch/resume", watches.resume, name="watch-resume"),
    path("watch/<int:session_id>/", watches.session, name="watch-session"),
    path("watch/<int:session_id>/live", watches.session_live, name="watch-live"),
    path("watch/<int:session_id>/drain", watches.drain, name="watch-drain"),
    path("watch/<int:session_id>/abort", watches.abort, name="watch-abort"),
    path("watch/<int:session_id>/kill", watches.kill, name="watch-kill"),
    path("watch/<int:session_id>/dismiss", overview.dismiss_watch, name="watch-dismiss"),
    path("validation/", watches.checks, name="checks"),
]
urlpatterns = [path("projects/<int:project_id>/", include(watch_patterns))]
