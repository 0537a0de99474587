"""Each act of a person is on the timeline with their name: every door that changes something, walked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver, reverse

from runs import tick
from runs.core.states import NoticeKind, ProjectState
from runs.dispatch import acts as auto
from runs.forges import acts as forges
from runs.groups import monitors
from runs.groups.terms import TaskStatus
from runs.models import (
    AgentProfile,
    ApiToken,
    Forge,
    Notice,
    NoticeAddress,
    Project,
    Run,
    Settings,
    WatchSession,
    Workflow,
)
from runs.people import api_tokens
from runs.watch import acts as watches
from runs.watch.session import Terms
from tests import make
from tests.fakes import World
from tests.pulls.review_desk import Review
from tests.web import people
from tests.web.test_doors import _addresses
from trackers.builtin import store

pytestmark = pytest.mark.django_db

# What nobody has to be told of: who asks who one is, what only the person themself sees.
NO_ACTS = {
    "confirm",
    "passkey-confirm",
    "passkey-confirm-question",
    "passkey-login-question",
    "away-dismiss",
    "notice-address-test",
    "project-new-test",
    "project-trackers",
    "tracker-test",
    "hook",  # no person: a forge
}
# They need a device, an agent's own login, or a stranger's link: shown by the tests of their files.
ELSEWHERE = {
    "passkey-login": "test_passkeys.py",
    "passkey-add": "test_passkeys.py",
    "passkey-remove": "test_passkeys.py",
    "setup": "test_auth.py",
    "login-again": "test_auth.py",
    "invite": "test_people.py",
    "agent-check": "test_agent_cards.py",
    "agent-try-again": "test_held_pages.py",
    "agent-try": "test_trial_pages.py",
    "agent-trial-stop": "test_trial_pages.py",
    "agent-login-begin": "test_logins_pages.py",
    "agent-login-code": "test_logins_pages.py",
    "agent-login-end": "test_logins_pages.py",
    "demo": "test_demo.py",
    "parked-discard": "test_kept_pages.py",
    "pull-decide": "test_closed_pages.py",
    "hook-set-up": "test_hook_pages.py",
    "rescue-restore": "test_kept_pages.py",
    "session-start": "test_manual_pages.py",
    "session-stop": "test_manual_pages.py",
    "run-answer": "test_answering.py",
    "run-interrupt": "test_interrupting.py",
    "resume": "test_resume_pages.py",
    "changes": "test_changes.py",
    "retry": "test_retrying.py",
}


class Stage:
    """Something of everything, and Anna, who was asked lately who she is."""

    def __init__(self, world: World, client: Client, anna: User) -> None:
        self.review = Review(world)
        self.world, self.client, self.user = world, client, anna
        self.project: Project = self.review.project
        self.settings = Settings.current()
        self.agent = make.an_agent()
        self.project.agent = self.agent
        self.project.save()
        self.vera = make.a_user("vera", operator=False)
        client.force_login(anna)
        people.confirmed(client)

    def at(self, name: str, *args: object) -> str:
        return reverse(f"runs:{name}", args=args)

    def of_project(self, name: str, data: Mapping[str, Any] | None = None, *args: object) -> Any:
        return self.client.post(self.at(name, self.project.pk, *args), data or {})

    def post(self, name: str, data: Mapping[str, Any] | None = None, *args: object) -> Any:
        return self.client.post(self.at(name, *args), data or {})

    def issue(self, **more: Any) -> int:
        given = {"title": "x", "body": "", "author": "bert", "labels": ["ready-for-agent"], **more}
        return store.create_issue(self.project.tracker_root, **given, at=self.world.clock.now)

    def run(self) -> Run:
        run = make.a_run(self.project, "70")
        self.world.live(run)
        return run

    def starts(self) -> None:
        self.issue()
        lab = self.world.lab

        class Ringing(type(lab.bell)):  # type: ignore[misc]
            def look(self, project: str) -> None:
                tick.tick(lab, project)

        self.world.lab = dataclasses.replace(lab, bell=Ringing())
        self.of_project("start")

    def failed_clone(self, name: str) -> None:
        Project.objects.update(state=ProjectState.FAILED, error="no such host")
        self.review.pull.delete()
        self.of_project(name)

    def new_project(self) -> None:
        url = "https://example.org/x.git"
        self.world.repos.urls[url] = "main"
        self.post("project-new", {"source": url, "name": "other"})

    def token(self) -> ApiToken:
        return api_tokens.make(self.world.lab, self.user, "old", ApiToken.Scope.LOOK)[0]

    def veras_token(self) -> ApiToken:
        return api_tokens.make(self.world.lab, self.vera, "hers", ApiToken.Scope.LOOK)[0]

    def address(self) -> NoticeAddress:
        given = {"name": "phone", "url": "json://127.0.0.1:1/x", "topics": ["ended.died"]}
        self.post("notice-address-new", given)
        return NoticeAddress.objects.get()

    def forge(self) -> Forge:
        given = {"kind": "gitea", "web": "https://git.example", "credential": {"token": "t"}}
        return forges.add(self.world.lab, name="Ours", by="anna", **given)

    def watch(self) -> WatchSession:
        return watches.open(self.world.lab, self.project, Terms(), by="anna")

    def ask_watch(self, what: str) -> None:
        session = self.watch()
        Notice.objects.all().delete()
        self.of_project(f"watch-{what}", {"sure": "yes"}, session.pk)

    def of_group(self, name: str, data: Mapping[str, Any] | None = None) -> None:
        """An act on a group whose one task is fa-1's."""
        group = make.a_group(self.project)
        task = make.a_task(group, "1", TaskStatus.IN_PROGRESS)
        if name == "monitor-stop":
            monitors.start(self.world.lab, group, by="anna")
            Notice.objects.all().delete()
        more = [task.pk] if name.startswith("task-") else []
        self.of_project(name, data, group.pk, *more)

    def workflow(self) -> Workflow:
        make.a_group(self.project, "wave", tasks=1)
        given = {"name": "release", "phases": "work: wave", "minutes": "90"}
        self.of_project("workflows", given)
        return Workflow.objects.get()

    def held(self) -> None:
        """A workflow whose phase failed, which Anna starts again."""
        row, now = self.workflow(), self.world.clock.now
        row.phases.update(state="error", ended_at=now)
        Workflow.objects.update(state="held", held_at=now, look_at=None)
        Notice.objects.all().delete()
        self.of_project("workflow-restart", {}, row.pk, 1)

    def ended_run(self) -> Run:
        return make.a_run(self.project, "8", outcome="died")

    def ended_watch(self) -> None:
        ended = {"phase": "ended", "code": 1, "reason": "issues failed"}
        row = WatchSession.objects.create(
            project=self.project,
            opened_at=self.world.clock.now,
            ended_at=self.world.clock.now,
            **ended,
        )
        self.of_project("watch-dismiss", {}, row.pk)

    def resume(self) -> None:
        auto.switch(self.world.lab, self.project, is_on=True, by="anna")
        ended = {"phase": "ended", "code": 3, "reason": "poll failed", "needs_resume": True}
        WatchSession.objects.update(ended_at=self.world.clock.now, **ended)
        Notice.objects.all().delete()
        self.of_project("watch-resume")


LOGIN = {"username": "anna", "password": "correct horse battery"}
SECRET = "an even longer secret"

ACTS: dict[str, Callable[[Stage], object]] = {
    "start": Stage.starts,
    "stop": lambda s: s.post("stop", {"sure": "yes"}, s.run().pk),
    "stop-all": lambda s: (s.run(), s.of_project("stop-all", {"sure": "yes"})),
    "run-dismiss": lambda s: s.post("run-dismiss", {}, s.ended_run().pk),
    "watch-dismiss": lambda s: s.ended_watch(),
    "needs-dismiss": lambda s: s.post("needs-dismiss", {"shown": f"run-{s.ended_run().pk}"}),
    "project-new": lambda s: s.new_project(),
    "project-retry": lambda s: s.failed_clone("project-retry"),
    "project-remove": lambda s: s.failed_clone("project-remove"),
    "settings": lambda s: s.post("settings", {"agent": str(s.agent.pk)}),
    "auto": lambda s: s.of_project("auto", {"is_on": "on"}),
    "streak-reset": lambda s: (
        Project.objects.update(streak=3),
        s.of_project("streak-reset"),
    ),
    "group-new": lambda s: s.of_project("group-new", {"name": "wave", "preset": "work"}),
    "group-from-issues": lambda s: s.of_project(
        "group-from-issues", {"name": "wave", "preset": "work", "issues": str(s.issue())}
    ),
    "group-add": lambda s: s.of_group("group-add", {"tasks": "One"}),
    "group-close": lambda s: s.of_group("group-close"),
    "group-delete": lambda s: s.of_group("group-delete", {"sure": "yes"}),
    "task-complete": lambda s: s.of_group("task-complete"),
    "task-hand-back": lambda s: s.of_group("task-hand-back"),
    "monitor-start": lambda s: s.of_group("monitor-start", {"quick": "yes"}),
    "monitor-stop": lambda s: s.of_group("monitor-stop"),
    "watches": lambda s: s.of_project("watches", {"is_watching": "on"}),
    "watch-drain": lambda s: s.ask_watch("drain"),
    "watch-abort": lambda s: s.ask_watch("abort"),
    "watch-kill": lambda s: s.ask_watch("kill"),
    "watch-resume": lambda s: s.resume(),
    "workflows": lambda s: s.workflow(),
    "workflow-stop": lambda s: s.of_project("workflow-stop", {}, s.workflow().pk),
    "workflow-restart": lambda s: s.held(),
    "checks": lambda s: s.of_project(
        "checks", {"checks": "true", "check_minutes": "5", "fix_attempts": "1"}
    ),
    "tracker": lambda s: s.of_project(
        "tracker", {"tracker": "builtin", "ready_label": "go", "mirror": "off"}
    ),
    "tracker-label": lambda s: (
        Project.objects.update(ready_label="go"),
        s.of_project("tracker-label"),
    ),
    "hook-secret": lambda s: s.of_project("hook-secret"),
    "forge-new": lambda s: s.post(
        "forge-new", {"kind": "gitea", "name": "A", "web": "https://a.example", "token": "t"}
    ),
    "forge": lambda s: s.post(
        "forge", {"name": "Other", "web": "https://git.example"}, s.forge().pk
    ),
    "forge-remove": lambda s: s.post("forge-remove", {}, s.forge().pk),
    "issue-new": lambda s: s.of_project("issue-new", {"title": "Add retries"}),
    "issue-edit": lambda s: s.of_project("issue-edit", {"title": "Other"}, s.issue()),
    "issue-comment": lambda s: s.of_project("issue-comment", {"comment": "Why?"}, s.issue()),
    "issue-state": lambda s: s.of_project("issue-state", {"state": "closed"}, s.issue()),
    "issue-labels": lambda s: s.of_project("issue-labels", {"labels": ["bug"]}, s.issue()),
    "pull-comment": lambda s: s.of_project("pull-comment", {"comment": "Why?"}, s.review.number),
    "pull-close": lambda s: s.of_project("pull-close", {}, s.review.number),
    "pull-merge": lambda s: s.of_project("pull-merge", {}, s.review.number),
    "token-new": lambda s: s.post("token-new", {"name": "n", "scope": "look", "days": "90"}),
    "token-revoke": lambda s: s.post("token-revoke", {}, s.token().pk),
    "password": lambda s: s.post(
        "password", {"old": LOGIN["password"], "password": SECRET, "again": SECRET}
    ),
    "notice-address-new": lambda s: s.address(),
    "notice-address": lambda s: s.post("notice-address", {"topics": []}, s.address().pk),
    "notice-address-remove": lambda s: s.post("notice-address-remove", {}, s.address().pk),
    "person-new": lambda s: s.post("person-new", {"name": "eve", "role": "viewer"}),
    "person-role": lambda s: s.post("person-role", {"role": "operator"}, s.vera.pk),
    "person-out": lambda s: s.post("person-out", {}, s.vera.pk),
    "person-in": lambda s: (
        User.objects.filter(pk=s.vera.pk).update(is_active=False),
        s.post("person-in", {}, s.vera.pk),
    ),
    "person-link": lambda s: s.post("person-link", {}, s.vera.pk),
    "person-token-revoke": lambda s: s.post(
        "person-token-revoke", {}, s.vera.pk, s.veras_token().pk
    ),
    "login": lambda s: Client().post(reverse("runs:login"), LOGIN),
    "logout": lambda s: s.post("logout"),
}


@pytest.fixture
def stage(world: World, client: Client, operator: User) -> Stage:
    return Stage(world, client, operator)


@pytest.mark.row("X-11", level="contract")
@pytest.mark.parametrize("name", ACTS)
def test_each_act_is_on_the_timeline_with_the_name(stage: Stage, name: str) -> None:
    Notice.objects.all().delete()
    ACTS[name](stage)
    told = list(Notice.objects.exclude(by="").values_list("by", "kind", "text"))
    assert told, f"{name}: {list(Notice.objects.values_list('kind', 'text'))}"
    assert {by for by, _, _ in told} <= {"anna", "vera"}
    assert told[0][0] == "anna"
    assert all(kind in set(NoticeKind) for _, kind, _ in told)


@pytest.mark.row("X-11", level="contract")
def test_the_switch_and_the_reset_are_told(stage: Stage) -> None:
    Notice.objects.all().delete()
    auto.switch(stage.world.lab, stage.project, is_on=True, by="anna")
    Project.objects.update(streak=3)
    auto.reset(stage.world.lab, stage.project, by="anna")
    told = dict(Notice.objects.values_list("kind", "by"))
    kinds = (NoticeKind.AUTO_CHANGED, NoticeKind.STREAK_RESET, NoticeKind.WATCH_OPENED)
    assert told == dict.fromkeys(kinds, "anna")


def test_the_walk_knows_every_door_that_changes_something(stage: Stage) -> None:
    """A new door fails here until it is walked above, or is said to be no act."""
    doors = set()
    for address, pattern in _addresses(get_resolver().url_patterns):
        if pattern.name and not address.startswith(("/admin/", "/api/v1/", "/agent/")):
            stage.client.force_login(stage.user)
            people.confirmed(stage.client)
            if stage.client.post(address).status_code != 405:
                doors.add(pattern.name)
    known = {*ACTS, *NO_ACTS, *ELSEWHERE}
    assert doors - known == set()
    assert known - doors == set()
    here = Path(__file__).parents[1]
    files = {path.name for path in here.rglob("test_*.py")}
    assert set(ELSEWHERE.values()) <= files


def test_what_is_no_act_tells_nothing(stage: Stage) -> None:
    Notice.objects.all().delete()
    stage.post("away-dismiss")
    stage.client.get("/")
    assert not Notice.objects.exists()
    assert AgentProfile.objects.exists()
