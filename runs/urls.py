"""Addresses of the pages, in small lists by prefix."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from runs.agents import urls as agent_urls
from runs.conversation import urls as conversation_urls
from runs.dispatch import views as dispatch_views
from runs.followups import views as follow_up_views
from runs.forges import urls as forge_urls
from runs.groups import urls as group_urls
from runs.issues import urls as issue_urls
from runs.kept import urls as kept_urls
from runs.lifecycle import views as run_views
from runs.manual import views as manual
from runs.overview import views as overview
from runs.people import account_urls
from runs.people import urls as people_urls
from runs.projects import views as project
from runs.settings import views as settings
from runs.timeline import views as timeline_views
from runs.waits import views as wait_views
from runs.watch import urls as watch_urls
from runs.workflows import urls as workflow_urls

app_name = "runs"

project_patterns = [
    path("new", project.project_new, name="project-new"),
    path("<int:project_id>/", project.project, name="project"),
    path("<int:project_id>/live", project.project_live, name="project-live"),
    path("<int:project_id>/start", dispatch_views.start, name="start"),
    path("<int:project_id>/auto", dispatch_views.switch, name="auto"),
    path("<int:project_id>/reset", dispatch_views.reset, name="streak-reset"),
    path("<int:project_id>/waiting", dispatch_views.waiting, name="waiting"),
    path("<int:project_id>/waiting/live", dispatch_views.waiting_live, name="waiting-live"),
    path("<int:project_id>/stop-all", run_views.stop_all, name="stop-all"),
    path("<int:project_id>/sessions/start", manual.start, name="session-start"),
    path("<int:project_id>/sessions/<int:session_id>/stop", manual.stop, name="session-stop"),
    path("<int:project_id>/retry", project.project_retry, name="project-retry"),
    path("<int:project_id>/remove", project.project_remove, name="project-remove"),
]
run_patterns: list[URLPattern | URLResolver] = [
    path("", run_views.runs, name="runs"),
    path("live", run_views.runs_live, name="runs-live"),
    path("<int:run_id>/", run_views.run, name="run"),
    path("<int:run_id>/live", run_views.run_live, name="run-live"),
    path("<int:run_id>/stop", run_views.stop, name="stop"),
    path("<int:run_id>/resume", follow_up_views.resume, name="resume"),
    path("<int:run_id>/retry", follow_up_views.retry, name="retry"),
    path("<int:run_id>/changes", follow_up_views.changes, name="changes"),
    path("<int:run_id>/answer", wait_views.answer, name="run-answer"),
    path("<int:run_id>/interrupt", wait_views.interrupt, name="run-interrupt"),
    path("<int:run_id>/dismiss", overview.dismiss_run, name="run-dismiss"),
    path("<int:run_id>/conversation/", include(conversation_urls)),
    path("<int:run_id>/pull", run_views.pull, name="run-pull"),
    path("<int:run_id>/pull/live", run_views.pull_live, name="run-pull-live"),
]
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("away/", overview.away_dismiss, name="away-dismiss"),
    path("live", overview.overview_live, name="overview-live"),
    path("needs/", overview.needs, name="needs"),
    path("needs/live", overview.needs_live, name="needs-live"),
    path("needs/dismiss", overview.dismiss_all, name="needs-dismiss"),
    path("frame/live", overview.frame_live, name="live"),
    path("demo/", overview.demo, name="demo"),
    path("projects/", include(project_patterns)),
    path("runs/", include(run_patterns)),
    path("api/", include("runs.api.urls")),
    path("audit/", timeline_views.audit, name="audit"),
    path("audit/live", timeline_views.audit_live, name="audit-live"),
    path("settings/", settings.settings, name="settings"),
    *agent_urls.urlpatterns,
    *account_urls.urlpatterns,
    *forge_urls.urlpatterns,
    *issue_urls.urlpatterns,
    *people_urls.urlpatterns,
    *kept_urls.urlpatterns,
    *watch_urls.urlpatterns,
    *group_urls.urlpatterns,
    *workflow_urls.urlpatterns,
]
