"""Addresses of kept work."""

from __future__ import annotations

from django.urls import include, path

from runs.kept import views as kept
from runs.pulls import closed_views

kept_patterns = [
    path("parked/", kept.parked, name="parked"),
    path("parked/live", kept.parked_live, name="parked-live"),
    path("parked/list", kept.parked_list, name="parked-list"),
    path("parked/discards", kept.discards, name="parked-discards"),
    path("parked/discard", kept.discard, name="parked-discard"),
    path("closed/<int:number>/", closed_views.pull_closed, name="pull-closed"),
    path("closed/<int:number>/decide", closed_views.pull_decide, name="pull-decide"),
    path("rescues/<int:rescue_id>/", kept.rescue, name="rescue"),
    path("rescues/<int:rescue_id>/restore", kept.restore, name="rescue-restore"),
]
urlpatterns = [path("projects/<int:project_id>/", include(kept_patterns))]
