"""Addresses of the pages, in small lists by prefix."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path
from django.urls.resolvers import RoutePattern

from runs.agents import urls as agent_urls
from runs.bulk import urls as bulk_urls
from runs.conversation import urls as conversation_urls
from runs.dispatch import views as dispatch_views
from runs.followups import views as follow_up_views
from runs.forges import urls as forge_urls
from runs.gate_pages import check_views
from runs.groups import urls as group_urls
from runs.history import urls as history_urls
from runs.hosts import urls as host_urls
from runs.issues import urls as issue_urls
from runs.kept import urls as kept_urls
from runs.lifecycle import views as run_views
from runs.loop_pages import urls as loop_urls
from runs.manual import views as manual
from runs.overview import morning_views
from runs.overview import views as overview
from runs.people import account_urls
from runs.people import urls as people_urls
from runs.phone import urls as phone_urls
from runs.project_settings import views as setting_views
from runs.projects import views as project
from runs.run_pages import receipt_views, replay_views, tabs
from runs.search import urls as search_urls
from runs.settings import views as settings
from runs.setup import file_views
from runs.specs import urls as spec_urls
from runs.timeline import views as timeline_views
from runs.waits import views as wait_views
from runs.watch import urls as watch_urls
from runs.workflows import urls as workflow_urls

app_name = "runs"


class LaterResolver(URLResolver):
    """Addresses below a namespace, loaded when one of them is first asked for or written."""

    def _populate(self) -> None:
        """Called with the addresses around it too, which need nothing of what is below a namespace."""
        if "urlconf_module" in self.__dict__:
            super()._populate()


project_patterns = [
    path("new", project.project_new, name="project-new"),
    path("<int:project_id>/", project.project, name="project"),
    path("<int:project_id>/live", project.project_live, name="project-live"),
    path("<int:project_id>/frame", overview.project_frame_live, name="project-frame-live"),
    path("<int:project_id>/start", dispatch_views.start, name="start"),
    path("<int:project_id>/auto", dispatch_views.switch, name="auto"),
    path("<int:project_id>/reset", dispatch_views.reset, name="streak-reset"),
    path("<int:project_id>/waiting", dispatch_views.waiting, name="waiting"),
    path("<int:project_id>/waiting/live", dispatch_views.waiting_live, name="waiting-live"),
    path("<int:project_id>/prove", check_views.prove_all, name="project-prove"),
    path("<int:project_id>/stop-all", run_views.stop_all, name="stop-all"),
    path("<int:project_id>/sessions/start", manual.start, name="session-start"),
    path("<int:project_id>/sessions/<int:session_id>/stop", manual.stop, name="session-stop"),
    path("<int:project_id>/retry", project.project_retry, name="project-retry"),
    path("<int:project_id>/settings/", setting_views.first, name="project-settings"),
    path(
        "<int:project_id>/settings/<str:group>/", setting_views.settings, name="project-settings-of"
    ),
    path("<int:project_id>/settings/setup/files", file_views.store, name="project-files"),
    path(
        "<int:project_id>/settings/setup/files/included",
        file_views.store_included,
        name="project-files-included",
    ),
    path(
        "<int:project_id>/settings/setup/files/<int:file_id>/remove",
        file_views.remove,
        name="project-file-remove",
    ),
    path("<int:project_id>/remove", project.project_remove, name="project-remove"),
]
run_patterns: list[URLPattern | URLResolver] = [
    path("<int:run_id>/", run_views.tab, {"name": tabs.STORY}, name="run"),
    path("<int:run_id>/live", run_views.tab_live, {"name": tabs.STORY}, name="run-live"),
    path("<int:run_id>/timeline/", run_views.timeline, name="run-timeline"),
    path("<int:run_id>/timeline/live", run_views.timeline_live, name="run-timeline-live"),
    path("<int:run_id>/terminal/", run_views.tab, {"name": tabs.TERMINAL}, name="run-terminal"),
    path(
        "<int:run_id>/terminal/live",
        run_views.tab_live,
        {"name": tabs.TERMINAL},
        name="run-terminal-live",
    ),
    path("<int:run_id>/terminal/screen", replay_views.screen, name="run-screen"),
    path("<int:run_id>/replay/", replay_views.replay, name="run-replay"),
    path("<int:run_id>/replay/live", replay_views.replay_live, name="run-replay-live"),
    path("<int:run_id>/replay/part", replay_views.part, name="run-replay-part"),
    path("<int:run_id>/replay.cast", replay_views.cast, name="run-replay-cast"),
    path("<int:run_id>/replay.txt", replay_views.text, name="run-replay-text"),
    path("<int:run_id>/changes/", run_views.tab, {"name": tabs.CHANGES}, name="run-changes"),
    path(
        "<int:run_id>/changes/live",
        run_views.tab_live,
        {"name": tabs.CHANGES},
        name="run-changes-live",
    ),
    path("<int:run_id>/prompt/", run_views.tab, {"name": tabs.PROMPT}, name="run-prompt"),
    path(
        "<int:run_id>/prompt/live",
        run_views.tab_live,
        {"name": tabs.PROMPT},
        name="run-prompt-live",
    ),
    path("<int:run_id>/raw/", run_views.tab, {"name": tabs.RAW}, name="run-raw"),
    path("<int:run_id>/receipt.html", receipt_views.receipt_html, name="run-receipt-html"),
    path("<int:run_id>/receipt.json", receipt_views.receipt_json, name="run-receipt-json"),
    path("<int:run_id>/raw/live", run_views.tab_live, {"name": tabs.RAW}, name="run-raw-live"),
    path("<int:run_id>/stop", run_views.stop, name="stop"),
    path("<int:run_id>/resume", follow_up_views.resume, name="resume"),
    path("<int:run_id>/retry", follow_up_views.retry, name="retry"),
    path("<int:run_id>/changes", follow_up_views.changes, name="changes"),
    path("<int:run_id>/answer", wait_views.answer, name="run-answer"),
    path("<int:run_id>/interrupt", wait_views.interrupt, name="run-interrupt"),
    path("<int:run_id>/allow", wait_views.allow, name="run-allow"),
    path("<int:run_id>/conversation/", include(conversation_urls)),
    path("<int:run_id>/checks/", check_views.checks, name="run-checks"),
    path("<int:run_id>/checks/live", check_views.checks_live, name="run-checks-live"),
    path("<int:run_id>/checks/prove", check_views.prove, name="run-prove"),
    path("<int:run_id>/checks/accept", check_views.accept, name="run-accept"),
    path("<int:run_id>/checks/send-back", check_views.send_back, name="run-send-back"),
    path("<int:run_id>/checks/line", check_views.line, name="run-check-line"),
    path(
        "<int:run_id>/checks/<int:number>/output/<str:name>",
        check_views.output,
        name="run-check-output",
    ),
    path("<int:run_id>/pull", run_views.pull, name="run-pull"),
    path("<int:run_id>/pull/live", run_views.pull_live, name="run-pull-live"),
]
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("digest/", morning_views.today, name="digest-today"),
    path("digest/live", morning_views.digest_live, name="digest-live"),
    path("digest/<slug:day>/", morning_views.digest, name="digest"),
    path("away/", overview.away_dismiss, name="away-dismiss"),
    path("live", overview.overview_live, name="overview-live"),
    path("needs/", overview.needs, name="needs"),
    path("needs/live", overview.needs_live, name="needs-live"),
    path("needs/hide", overview.needs_hide, name="needs-hide"),
    path("needs/back", overview.needs_back, name="needs-back"),
    path("frame/live", overview.frame_live, name="live"),
    path("demo/", overview.demo, name="demo"),
    path("projects/", include(project_patterns)),
    path("runs/", include(run_patterns)),
    # A third of what all pages take to load, for programs that may never ask.
    LaterResolver(RoutePattern("api/"), "runs.api.urls", app_name="api", namespace="api"),
    LaterResolver(
        RoutePattern("agent/"), "runs.issues.agent_urls", app_name="agent", namespace="agent"
    ),
    path("audit/", timeline_views.audit, name="audit"),
    path("audit/live", timeline_views.audit_live, name="audit-live"),
    path("settings/", settings.settings, name="settings"),
    *agent_urls.urlpatterns,
    *account_urls.urlpatterns,
    *bulk_urls.urlpatterns,
    *forge_urls.urlpatterns,
    *history_urls.urlpatterns,
    *host_urls.urlpatterns,
    *issue_urls.urlpatterns,
    *people_urls.urlpatterns,
    *phone_urls.urlpatterns,
    *kept_urls.urlpatterns,
    *search_urls.urlpatterns,
    *spec_urls.urlpatterns,
    *loop_urls.urlpatterns,
    *watch_urls.urlpatterns,
    *group_urls.urlpatterns,
    *workflow_urls.urlpatterns,
    path(
        "validations/<int:validation_id>/output/<str:name>",
        check_views.validation_output,
        name="validation-output",
    ),
]
