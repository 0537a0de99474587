"""Addresses of task groups and their monitors."""

from __future__ import annotations

from django.urls import include, path

from runs.groups import act_views, monitor_views, views

group_patterns = [
    path("", views.groups, name="groups"),
    path("live", views.groups_live, name="groups-live"),
    path("new", act_views.new, name="group-new"),
    path("from-issues", act_views.from_issues, name="group-from-issues"),
    path("<int:group_id>/", views.group, name="group"),
    path("<int:group_id>/live", views.group_live, name="group-live"),
    path("<int:group_id>/tasks/", views.tasks, name="group-tasks"),
    path("<int:group_id>/feed", views.feed, name="group-feed"),
    path("<int:group_id>/add", act_views.add, name="group-add"),
    path("<int:group_id>/close", act_views.close, name="group-close"),
    path("<int:group_id>/delete", act_views.delete, name="group-delete"),
    path("<int:group_id>/monitor", monitor_views.start, name="monitor-start"),
    path("<int:group_id>/monitor/stop", monitor_views.stop, name="monitor-stop"),
    path("<int:group_id>/tasks/<int:task_id>/complete", act_views.complete, name="task-complete"),
    path(
        "<int:group_id>/tasks/<int:task_id>/hand-back",
        act_views.hand_back,
        name="task-hand-back",
    ),
]
urlpatterns = [
    path("groups/", views.all_groups, name="groups-all"),
    path("groups/live", views.all_groups_live, name="groups-all-live"),
    path("projects/<int:project_id>/groups/", include(group_patterns)),
]
