"""Addresses of kept work."""

from __future__ import annotations

from django.urls import include, path

from runs.kept import views
from runs.pulls import closed_views

kept_patterns = [
    path("parked/", views.parked, name="parked"),
    path("parked/live", views.parked_live, name="parked-live"),
    path("parked/list", views.parked_list, name="parked-list"),
    path("parked/discards", views.discards, name="parked-discards"),
    path("parked/discard", views.discard, name="parked-discard"),
    path("closed/<int:number>/", closed_views.pull_closed, name="pull-closed"),
    path("closed/<int:number>/decide", closed_views.pull_decide, name="pull-decide"),
    path("rescues/<int:rescue_id>/", views.rescue, name="rescue"),
    path("rescues/<int:rescue_id>/restore", views.restore, name="rescue-restore"),
]
urlpatterns = [path("projects/<int:project_id>/", include(kept_patterns))]
