"""Addresses of issues and pull requests, and of the agent's API."""

from __future__ import annotations

from django.urls import include, path

from runs.agents import agent_api
from runs.groups import agent_api as group_agent_api
from runs.issues import views
from runs.issues.remote_pages import kept_here
from runs.pulls import review_views
from runs.pulls import views as pulls

issue_patterns = [
    path("", views.issue_list, name="issues"),
    path("live", views.issue_list_live, name="issues-live"),
    path("new", views.issue_new, name="issue-new"),
    path("<int:number>/", views.issue, name="issue"),
    path("<int:number>/live", views.issue_refresh, name="issue-live"),
    path("<int:number>/edit", views.issue_edit, name="issue-edit"),
    path("<int:number>/comment", views.issue_comment, name="issue-comment"),
    path("<int:number>/state", views.issue_state, name="issue-state"),
    path("<int:number>/labels", views.issue_labels, name="issue-labels"),
]
pull_patterns = [
    path("", pulls.pull_list, name="pulls"),
    path("live", pulls.pull_list_live, name="pulls-live"),
    path("<int:number>/", pulls.pull, name="pull"),
    path("<int:number>/live", pulls.pull_live, name="pull-live"),
    path("<int:number>/close", pulls.pull_close, name="pull-close"),
    path("<int:number>/merge", pulls.pull_merge, name="pull-merge"),
    path("<int:number>/comment", review_views.pull_comment, name="pull-comment"),
    path("<int:number>/frame", review_views.pull_frame_live, name="pull-frame-live"),
    path("<int:number>/commits", review_views.pull_commits, name="pull-commits"),
    path("<int:number>/commits/live", review_views.pull_commits_live, name="pull-commits-live"),
    path("<int:number>/commits/<str:commit>", review_views.pull_commit, name="pull-commit"),
    path("<int:number>/files", review_views.pull_files, name="pull-files"),
    path("<int:number>/files/live", review_views.pull_files_live, name="pull-files-live"),
    path("<int:number>/files/<int:file_number>", review_views.pull_file, name="pull-file"),
]
agent_patterns = [
    path("whoami", agent_api.whoami, name="agent-whoami"),
    path("issues", agent_api.issue_list, name="agent-issues"),
    path("issues/<str:key>/comments", agent_api.comments, name="agent-comments"),
    path("issues/<str:key>", agent_api.issue, name="agent-issue"),
    path("done", agent_api.done, name="agent-done"),
    path("git-credential", agent_api.git_credential, name="agent-git-credential"),
    path("pull/comments", agent_api.pull_comments, name="agent-pull-comments"),
    path("pull", agent_api.pull, name="agent-pull"),
    path("groups", group_agent_api.groups_door, name="agent-groups"),
    path("groups/<str:name>", group_agent_api.group, name="agent-group"),
    path("groups/<str:name>/close", group_agent_api.close, name="agent-group-close"),
    path("groups/<str:name>/watch", group_agent_api.watch, name="agent-group-watch"),
    path("groups/<str:name>/tasks", group_agent_api.tasks_door, name="agent-tasks"),
    path("groups/<str:name>/claim", group_agent_api.claim, name="agent-claim"),
    path("groups/<str:name>/tasks/<str:key>/done", group_agent_api.done, name="agent-task-done"),
    path(
        "groups/<str:name>/tasks/<str:key>/release",
        group_agent_api.release,
        name="agent-task-release",
    ),
    path("<path:rest>", agent_api.nothing),
]
urlpatterns = [
    path("projects/<int:project_id>/issues/", include(kept_here("issues", issue_patterns))),
    path("projects/<int:project_id>/pulls/", include(kept_here("pulls", pull_patterns))),
    path("agent/", include(agent_patterns)),
]
