"""Addresses of issues and pull requests."""

from __future__ import annotations

from django.urls import include, path

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
    path("<int:number>/check", pulls.pull_check, name="pull-check"),
    path("<int:number>/comment", review_views.pull_comment, name="pull-comment"),
    path("<int:number>/frame", review_views.pull_frame_live, name="pull-frame-live"),
    path("<int:number>/commits", review_views.pull_commits, name="pull-commits"),
    path("<int:number>/commits/live", review_views.pull_commits_live, name="pull-commits-live"),
    path("<int:number>/commits/<str:commit>", review_views.pull_commit, name="pull-commit"),
    path("<int:number>/files", review_views.pull_files, name="pull-files"),
    path("<int:number>/files/live", review_views.pull_files_live, name="pull-files-live"),
    path("<int:number>/files/<int:file_number>", review_views.pull_file, name="pull-file"),
]
urlpatterns = [
    path("projects/<int:project_id>/issues/", include(kept_here("issues", issue_patterns))),
    path("projects/<int:project_id>/pulls/", include(kept_here("pulls", pull_patterns))),
]
