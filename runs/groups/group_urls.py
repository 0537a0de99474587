"""Addresses of task groups and their monitors."""

from __future__ import annotations

from django.urls import include, path

from runs.groups import group_acts, group_monitors
from runs.groups import views as groups

group_patterns = [
    path("", groups.groups, name="groups"),
    path("live", groups.groups_live, name="groups-live"),
    path("new", group_acts.new, name="group-new"),
    path("from-issues", group_acts.from_issues, name="group-from-issues"),
    path("<int:group_id>/", groups.group, name="group"),
    path("<int:group_id>/live", groups.group_live, name="group-live"),
    path("<int:group_id>/tasks/", groups.tasks, name="group-tasks"),
    path("<int:group_id>/feed", groups.feed, name="group-feed"),
    path("<int:group_id>/add", group_acts.add, name="group-add"),
    path("<int:group_id>/close", group_acts.close, name="group-close"),
    path("<int:group_id>/delete", group_acts.delete, name="group-delete"),
    path("<int:group_id>/monitor", group_monitors.start, name="monitor-start"),
    path("<int:group_id>/monitor/stop", group_monitors.stop, name="monitor-stop"),
    path("<int:group_id>/tasks/<int:task_id>/complete", group_acts.complete, name="task-complete"),
    path(
        "<int:group_id>/tasks/<int:task_id>/hand-back",
        group_acts.hand_back,
        name="task-hand-back",
    ),
]
urlpatterns = [path("projects/<int:project_id>/groups/", include(group_patterns))]
