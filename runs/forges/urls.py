"""Addresses of forges, of each project's tracker, and of the door for webhooks."""

from __future__ import annotations

from django.urls import include, path

from runs.forges import hook_views, tracker_views, views

forge_patterns = [
    path("", views.forges, name="forges"),
    path("live", views.forges_live, name="forges-live"),
    path("new", views.forge_new, name="forge-new"),
    path("<int:forge_id>/", views.forge, name="forge"),
    path("<int:forge_id>/remove", views.forge_remove, name="forge-remove"),
]
tracker_patterns = [
    path("", tracker_views.tracker, name="tracker"),
    path("test", tracker_views.test, name="tracker-test"),
    path("label", tracker_views.label, name="tracker-label"),
    path("secret", tracker_views.secret, name="hook-secret"),
    path("hook", tracker_views.hook_set_up, name="hook-set-up"),
]
urlpatterns = [
    path("forges/", include(forge_patterns)),
    path("projects/new/trackers", tracker_views.trackers_of_new, name="project-trackers"),
    path("projects/new/test", tracker_views.test_of_new, name="project-new-test"),
    path("projects/<int:project_id>/tracker/", include(tracker_patterns)),
    path("hooks/<str:key>/", hook_views.hook, name="hook"),
]
