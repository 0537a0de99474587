"""Each act of a person is on the timeline with their name: every door that changes something, walked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.test import Client
from django.urls import get_resolver, reverse

from runs import tick
from runs.core.states import CompletionPolicy, NoticeKind, ProjectState
from runs.forges import acts as forges
from runs.groups import monitors
from runs.groups.terms import TaskStatus
from runs.loop_settings import settings_acts as loop_settings
from runs.models import (
    AgentProfile,
    ApiToken,
    Forge,
    HiddenNeed,
    Host,
    Notice,
    NoticeAddress,
    Project,
    Run,
    Settings,
    WatchSession,
    Workflow,
)
from runs.overview import queries as overview
from runs.people import api_tokens
from runs.setup import file_acts
from runs.specs import acts as spec_acts
from runs.validation.specs import Command, Kind
from runs.watch import acts as watches
from runs.watch import switch as auto
from runs.watch.session import Terms
from tests import make
from tests.fakes import World
from tests.notices.push_service import Browser
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
    "host-join",  # no person: a machine with a join token
    "push-renew",  # no person: a device whose browser has a new subscription
    "push-receipt",  # no person: a device that says what it got
}
RALPH = {"settings": "max_iterations: 7", "sure": "yes"}
# They need a device, an agent's own login, or a stranger's link: shown by the tests of their files.
ELSEWHERE = {
    "pull-check": "test_proofs.py",
    "run-accept": "test_acceptance.py",
    "run-send-back": "test_acceptance.py",
    "push-act": "test_push_acts.py",
    "bulk-runs": "test_bulk.py",
    "bulk-pulls": "test_bulk.py",
    "bulk-parked": "test_bulk.py",
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
    "project-files-included": "test_files.py",
    "parked-discard": "test_kept_pages.py",
    "pull-decide": "test_closed_pages.py",
    "hook-set-up": "test_hook_pages.py",
    "rescue-restore": "test_kept_pages.py",
    "session-start": "test_manual_pages.py",
    "session-stop": "test_manual_pages.py",
    "run-answer": "test_answering.py",
    "run-interrupt": "test_interrupting.py",
    "run-allow": "test_closed_issues.py",
    "resume": "test_resume_pages.py",
    "changes": "test_changes.py",
    "retry": "test_retrying.py",
    "run-guide": "test_loop_pages.py",
    "run-loop-stop": "test_loop_pages.py",
    "run-loop-restart": "test_loop_pages.py",
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

    def remove_file(self) -> None:
        made = file_acts.store(self.world.lab, self.project, **FILE, by="anna")
        Notice.objects.all().delete()
        self.of_project("project-file-remove", {}, made.pk)

    def token(self) -> ApiToken:
        return api_tokens.make(self.world.lab, self.user, "old", ApiToken.Scope.LOOK)[0]

    def veras_token(self) -> ApiToken:
        return api_tokens.make(self.world.lab, self.vera, "hers", ApiToken.Scope.LOOK)[0]

    def address(self) -> NoticeAddress:
        given = {"name": "phone", "url": "json://127.0.0.1:1/x", "topics": ["ended.died"]}
        self.post("notice-address-new", given)
        return NoticeAddress.objects.get()

    def host(self, *, with_run: bool = False, **columns: Any) -> Host:
        if with_run:
            Run.objects.filter(pk=self.run().pk).update(host="away")
        Host.objects.create(name="another")  # the only one is not removed
        return Host.objects.create(name="away", **columns)

    def forge(self) -> Forge:
        given = {"kind": "gitea", "web": "https://git.example", "credential": {"token": "t"}}
        return forges.add(self.world.lab, name="Ours", by="anna", **given)

    def watch(self) -> WatchSession:
        return watches.open(self.world.lab, self.project, Terms(), by="anna")

    def ask_watch(self, what: str) -> None:
        session = self.watch()
        Notice.objects.all().delete()
        self.of_project(f"watch-{what}", {"sure": "yes"}, session.pk)

    def validate_watch(self) -> None:
        session = self.watch()
        Project.objects.update(checks="make check")
        ended = {"phase": "ended", "code": 1, "reason": "validation failed"}
        WatchSession.objects.update(ended_at=self.world.clock.now, **ended)
        now = self.world.clock.now
        failed = {"number": 1, "count": 0, "state": "failed", "minutes": 30, "most_fixers": 0}
        session.validations.create(
            project=self.project, host="local", mark="m", began_at=now, ended_at=now, **failed
        )
        Notice.objects.all().delete()
        self.of_project("watch-validate", {}, session.pk)

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

    def of_command(self, name: str, data: Mapping[str, Any] | None = None) -> None:
        """An act on the second of two commands."""
        for one in ("first", "second"):
            made = Command(one, ("true",), Kind.LINT)
            row = spec_acts.add_command(self.world.lab, self.project, made, by="anna")
        Notice.objects.all().delete()
        self.of_project(name, data, row.pk)

    def of_reviewer(self, name: str, data: Mapping[str, Any] | None = None) -> None:
        values = {"name": "reader", "command": ["read"]}
        row = spec_acts.add_reviewer(self.world.lab, self.project, values, by="anna")
        Notice.objects.all().delete()
        self.of_project(name, data, row.pk)

    def of_role(self, name: str, data: Mapping[str, Any] | None = None) -> None:
        """An act on a role of the project's loops."""
        given = {**LOOP_ROLE, "subscriptions": ["build.done"]}
        row = loop_settings.add_role(self.world.lab, self.project, given, by="anna")
        Notice.objects.all().delete()
        self.of_project(name, data, row.pk)

    def of_memory(self) -> None:
        row = loop_settings.add_memory(self.world.lab, self.project, "a fact", by="anna")
        Notice.objects.all().delete()
        self.of_project("loop-memory-remove", {}, row.pk)

    def propose(self) -> None:
        repos = self.world.repos
        commit = repos.upstream(Path(), "main")
        repos.made[commit] = repos.made[repos.commit({"go.mod": ""})]
        self.of_project("spec-propose", {"commit": commit, "take": ["go vet"]})

    def ended_run(self) -> Run:
        return make.a_run(self.project, "8", outcome="died")

    def accepted(self) -> Run:
        """Accepted work that no run level proves any more."""
        Project.objects.update(policy=CompletionPolicy.GATES)
        return make.a_run(self.project, "9", outcome="no_change", attempts=1)

    def needed(self) -> str:
        """What a page says of a run that died, for acts on the list of what needs somebody."""
        run = self.ended_run()
        (need,) = [
            one
            for one in overview.needs(self.world.lab).needs.found
            if one.id == f"need-run-{run.pk}"
        ]
        return f"{need.id}.{need.facts}"

    def hidden(self) -> None:
        need = self.needed().partition(".")[0]
        user = User.objects.get(username="anna")
        HiddenNeed.objects.create(user=user, need=need, facts="x")

    def resume(self) -> None:
        auto.switch(self.world.lab, self.project, is_on=True, by="anna")
        ended = {"phase": "ended", "code": 3, "reason": "poll failed", "needs_resume": True}
        WatchSession.objects.update(ended_at=self.world.clock.now, **ended)
        Notice.objects.all().delete()
        self.of_project("watch-resume")


FILE = {"path": ".env", "content": "A=1\n"}
LOGIN = {"username": "anna", "password": "correct horse battery"}
SECRET = "an even longer secret"
SPEC_COMMAND = {"name": "ruff", "argv": "ruff check", "kind": "lint", "minutes": "30"}
SPEC_REVIEWER = {"name": "reader", "command": "review", "is_on": "on"}
LOOP_ROLE = {"name": "builder", "instructions": "Build.", "subscriptions": "build.done"}
LOOP_TERMS = {
    **{"is_persistent": "no", "completion": "DONE", "cooldown_seconds": "0", "idle_seconds": "9"},
    "answer_seconds": "600",
    **{"failures": "3", "recoveries": "3", "same_event": "3"},
    "pause_seconds": "30",
    **{"malformed": "3", "blocks": "3", "redispatches": "3"},
}
SPEC_TERMS = {
    **{"coverage_min_percent": "90", "max_gate_attempts": "3", "max_review_attempts": "3"},
    **{"review_minutes": "20", "review_total_minutes": "120", "e2e_minutes": "5"},
}

ACTS: dict[str, Callable[[Stage], object]] = {
    "start": Stage.starts,
    "stop": lambda s: s.post("stop", {"sure": "yes"}, s.run().pk),
    "stop-all": lambda s: (s.run(), s.of_project("stop-all", {"sure": "yes"})),
    "needs-hide": lambda s: s.post("needs-hide", {"shown": s.needed()}),
    "needs-back": lambda s: (s.hidden(), s.post("needs-back", {})),
    "run-prove": lambda s: s.post("run-prove", {}, s.accepted().pk),
    "project-prove": lambda s: (s.accepted(), s.of_project("project-prove")),
    "project-new": lambda s: s.new_project(),
    "project-retry": lambda s: s.failed_clone("project-retry"),
    "project-remove": lambda s: s.failed_clone("project-remove"),
    "project-settings-of": lambda s: s.of_project(
        "project-settings-of", {"parallel_runs": "2", "trusted": "anna", "weight": "1"}, "starting"
    ),
    "project-files": lambda s: s.of_project(
        "project-files", {f"file-{name}": text for name, text in FILE.items()}
    ),
    "project-file-remove": lambda s: s.remove_file(),
    "settings": lambda s: s.post("settings", {"agent": str(s.agent.pk)}),
    "auto": lambda s: s.of_project("auto", {"is_on": "on"}),
    "badge": lambda s: s.of_project("badge", {"is_public": "on"}),
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
    "watch-validate": lambda s: s.validate_watch(),
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
    "spec-policy": lambda s: s.of_project("spec-policy", {"policy": "gates"}),
    "spec-terms": lambda s: s.of_project("spec-terms", {**SPEC_TERMS}),
    "loop-terms": lambda s: s.of_project("loop-terms", LOOP_TERMS),
    "loop-import": lambda s: s.of_project("loop-import", RALPH),
    "loop-role-new": lambda s: s.of_project("loop-role-new", LOOP_ROLE),
    "loop-role": lambda s: s.of_role("loop-role", {**LOOP_ROLE, "name": "other"}),
    "loop-role-remove": lambda s: s.of_role("loop-role-remove"),
    "loop-memory-remove": lambda s: s.of_memory(),
    "spec-propose": lambda s: s.propose(),
    "spec-import": lambda s: s.of_project("spec-import", {"text": "preset: go", "sure": "yes"}),
    "spec-command-new": lambda s: s.of_project("spec-command-new", SPEC_COMMAND),
    "spec-command": lambda s: s.of_command("spec-command", {**SPEC_COMMAND, "name": "other"}),
    "spec-command-move": lambda s: s.of_command("spec-command-move", {"to": "up"}),
    "spec-command-remove": lambda s: s.of_command("spec-command-remove"),
    "spec-reviewer-new": lambda s: s.of_project("spec-reviewer-new", SPEC_REVIEWER),
    "spec-reviewer": lambda s: s.of_reviewer("spec-reviewer", {**SPEC_REVIEWER, "name": "other"}),
    "spec-reviewer-remove": lambda s: s.of_reviewer("spec-reviewer-remove"),
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
    "host-drain": lambda s: s.post("host-drain", {}, s.host().pk),
    "host-resume": lambda s: s.post("host-resume", {}, s.host(is_draining=True).pk),
    "host-give-up": lambda s: s.post("host-give-up", {}, s.host(with_run=True).pk),
    "host-remove": lambda s: s.post("host-remove", {}, s.host().pk),
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
    "device-new": lambda s: s.post(
        "device-new",
        {"name": "phone", **Browser("push.example.org", scheme="https").given},
    ),
    "notice-times": lambda s: s.post(
        "notice-times", {"quiet_from": "22:00", "quiet_to": "07:00", "zone": "UTC"}
    ),
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


@pytest.mark.every_case
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


@pytest.mark.long
def test_the_walk_knows_every_door_that_changes_something(stage: Stage) -> None:
    """A new door fails here until it is walked above, or is said to be no act."""
    doors = set()
    for address, pattern in _addresses(get_resolver().url_patterns):
        if pattern.name and not address.startswith(("/admin/", "/api/v1/", "/agent/")):
            if SESSION_KEY not in stage.client.session:  # a door may log out
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
