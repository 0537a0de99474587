"""Addresses of issues and pull requests, and of the agent's API."""

from __future__ import annotations

from django.urls import include, path

from runs.web.views import agent_api, issues, pulls, review

issue_patterns = [
    path("", issues.issue_list, name="issues"),
    path("live", issues.issue_list_live, name="issues-live"),
    path("new", issues.issue_new, name="issue-new"),
    path("<int:number>/", issues.issue, name="issue"),
    path("<int:number>/live", issues.issue_refresh, name="issue-live"),
    path("<int:number>/edit", issues.issue_edit, name="issue-edit"),
    path("<int:number>/comment", issues.issue_comment, name="issue-comment"),
    path("<int:number>/state", issues.issue_state, name="issue-state"),
    path("<int:number>/labels", issues.issue_labels, name="issue-labels"),
]
pull_patterns = [
    path("", pulls.pull_list, name="pulls"),
    path("live", pulls.pull_list_live, name="pulls-live"),
    path("<int:number>/", pulls.pull, name="pull"),
    path("<int:number>/live", pulls.pull_live, name="pull-live"),
    path("<int:number>/close", pulls.pull_close, name="pull-close"),
    path("<int:number>/merge", pulls.pull_merge, name="pull-merge"),
    path("<int:number>/comment", review.pull_comment, name="pull-comment"),
    path("<int:number>/frame", review.pull_frame_live, name="pull-frame-live"),
    path("<int:number>/commits", review.pull_commits, name="pull-commits"),
    path("<int:number>/commits/live", review.pull_commits_live, name="pull-commits-live"),
    path("<int:number>/commits/<str:commit>", review.pull_commit, name="pull-commit"),
    path("<int:number>/files", review.pull_files, name="pull-files"),
    path("<int:number>/files/live", review.pull_files_live, name="pull-files-live"),
    path("<int:number>/files/<int:file_number>", review.pull_file, name="pull-file"),
]
agent_patterns = [
    path("whoami", agent_api.whoami, name="agent-whoami"),
    path("issues", agent_api.issue_list, name="agent-issues"),
    path("issues/<str:key>/comments", agent_api.comments, name="agent-comments"),
    path("issues/<str:key>", agent_api.issue, name="agent-issue"),
    path("pull/comments", agent_api.pull_comments, name="agent-pull-comments"),
    path("pull", agent_api.pull, name="agent-pull"),
    path("<path:rest>", agent_api.nothing),
]
urlpatterns = [
    path("projects/<int:project_id>/issues/", include(issue_patterns)),
    path("projects/<int:project_id>/pulls/", include(pull_patterns)),
    path("agent/", include(agent_patterns)),
]
