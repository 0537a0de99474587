"""Nobody's edit is overwritten silently: each form on something stored says who changed it meanwhile."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

import runs
from runs.models import (
    AgentProfile,
    ApiToken,
    CheckCommand,
    Forge,
    LoopRole,
    LoopTerms,
    NoticeAddress,
    NoticeTimes,
    Project,
    Reviewer,
    Settings,
)
from runs.people import acts as people_acts
from runs.people import api_tokens
from tests import make
from tests.fakes import World
from tests.web import people
from tests.web.test_acts import (
    LOOP_ROLE,
    LOOP_TERMS,
    SPEC_COMMAND,
    SPEC_REVIEWER,
    SPEC_TERMS,
    Stage,
)
from trackers.builtin import queries
from trackers.builtin.models import Issue

pytestmark = pytest.mark.django_db

# Forms that show nothing stored: something new, an answer, a proof of who one is.
NEW = {
    "FileForm",  # a content that nobody is shown
    *("AddressForm", "AnswerForm", "ChecksForm", "ConfirmForm", "DeviceForm", "ImportForm"),
    *("IssuesForm", "LoginForm", "MonitorForm", "MoreTasksForm", "PasswordForm", "PersonForm"),
    *("ProjectForm", "SetupForm", "TasksForm", "TokenForm", "TopicsForm", "WatchForm"),
    *("WorkflowForm", "_New"),
}
# Forms that only narrow what a page shows.
LOOKS = {"AuditFilter", "ConversationPlace", "EntriesPlace", "ReplayPlace"}


def test_each_form_on_something_stored_carries_the_mark_of_what_it_showed() -> None:
    for found in pkgutil.walk_packages(runs.__path__, "runs."):
        if re.search(r"(^|[._])(forms|views|pages|admin)$", found.name):
            importlib.import_module(found.name)
    ours = [one for one in _below(forms.BaseForm) if one.__module__.startswith("runs.")]
    without = {one.__name__ for one in ours if one.base_fields and "seen" not in one.base_fields}
    assert without == NEW | LOOKS


def _below(of: type[Any]) -> Iterator[type[Any]]:
    for one in of.__subclasses__():
        yield one
        yield from _below(one)


@dataclass(frozen=True)
class Form:
    """A form: its page, the field, what else one sends, both values, and what is stored."""

    page: str
    name: str
    given: Mapping[str, Any]
    mine: str
    theirs: str
    now: Callable[[Stage], Any]
    make: Callable[[Stage], object] = lambda stage: None
    about: Callable[[Stage], list[object]] = lambda stage: [stage.project.pk]
    post: str = ""
    by: str = "bert"


def _of(model: type[Any], name: str) -> Callable[[Stage], str]:
    return lambda stage: str(getattr(model.objects.get(), name))


def _at(model: type[Any]) -> Callable[[Stage], list[object]]:
    return lambda stage: [stage.project.pk, model.objects.get().pk]


def _project(name: str) -> Callable[[Stage], str]:
    return lambda stage: str(getattr(Project.objects.get(pk=stage.project.pk), name))


FORMS = {
    "project": Form(
        *("project-settings-of", "parallel_runs", {"weight": "1"}, "2", "3"),
        _project("parallel_runs"),
        about=lambda s: [s.project.pk, "starting"],
    ),
    "policy": Form(
        *("spec", "policy", {}, "pull_request", "gates", _project("policy")), post="spec-policy"
    ),
    "checks": Form(
        *("spec", "e2e_minutes", SPEC_TERMS, "7", "9"),
        lambda s: str(s.project.check_terms.__class__.objects.get().e2e_minutes),
        post="spec-terms",
    ),
    "command": Form(
        *("spec-command", "minutes", SPEC_COMMAND, "7", "9", _of(CheckCommand, "minutes")),
        make=lambda s: s.of_project("spec-command-new", SPEC_COMMAND),
        about=_at(CheckCommand),
    ),
    "reviewer": Form(
        *("spec-reviewer", "instructions", SPEC_REVIEWER, "mine", "theirs"),
        _of(Reviewer, "instructions"),
        make=lambda s: s.of_project("spec-reviewer-new", SPEC_REVIEWER),
        about=_at(Reviewer),
    ),
    "loops": Form(
        *("loop-settings", "cooldown_seconds", LOOP_TERMS, "7", "9"),
        _of(LoopTerms, "cooldown_seconds"),
        post="loop-terms",
    ),
    "role of a loop": Form(
        *("loop-role", "instructions", LOOP_ROLE, "mine", "theirs", _of(LoopRole, "instructions")),
        make=lambda s: s.of_project("loop-role-new", LOOP_ROLE),
        about=_at(LoopRole),
    ),
    "role of a person": Form(
        *("person", "role", {}, "admin", "operator"),
        lambda s: people_acts.role(User.objects.get(pk=s.vera.pk)).value,
        about=lambda s: [s.vera.pk],
        post="person-role",
    ),
    "hours": Form(
        *("notice-times", "digest_at", {"zone": "UTC"}, "07:00", "08:30"),
        lambda s: f"{NoticeTimes.objects.get().digest_at:%H:%M}",
        about=lambda s: [],
        by="anna",
    ),
    "address": Form(
        *("notice-address", "after_minutes", {"topics": []}, "7", "9"),
        _of(NoticeAddress, "after_minutes"),
        make=Stage.address,
        about=lambda s: [NoticeAddress.objects.get().pk],
        by="anna",
    ),
    "account": Form(
        *("forge", "name", {"web": "https://git.example"}, "Mine", "Theirs", _of(Forge, "name")),
        make=Stage.forge,
        about=lambda s: [Forge.objects.get().pk],
    ),
    "tracker": Form(
        *("tracker", "ready_label", {"tracker": "builtin", "mirror": "off"}, "mine", "theirs"),
        _project("ready_label"),
    ),
    "agent": Form(
        *("settings", "effort", {}, "high", "low"),
        lambda s: Settings.current().effort,
        make=lambda s: AgentProfile.objects.update(efforts=["low", "high"]),
        about=lambda s: [],
    ),
    "issue": Form(
        *("issue-edit", "body", {"title": "x"}, "mine", "theirs"),
        lambda s: queries.issue(s.project.tracker_root, _newest(s)).body,
        make=Stage.issue,
        about=lambda s: [s.project.pk, _newest(s)],
    ),
}


def _newest(stage: Stage) -> int:
    return Issue.objects.latest("pk").number


@pytest.fixture
def stage(world: World, client: Client, operator: User) -> Stage:
    return Stage(world, client, operator)


@dataclass
class Person:
    """Somebody with a browser of their own, in which a page stays open."""

    client: Client
    form: Form
    about: list[object]
    seen: dict[str, str] = field(default_factory=dict)

    def look(self) -> None:
        self.read(self.client.get(reverse(f"runs:{self.form.page}", args=self.about)))

    def read(self, page: Any) -> None:
        marks = re.findall(r'name="seen" value="([^"]+)"', page.content.decode())
        (self.seen["seen"],) = [
            one for one in marks if f"{self.form.name}." in one or len(marks) == 1
        ]

    def save(self, value: str, **more: str) -> Any:
        at = reverse(f"runs:{self.form.post or self.form.page}", args=self.about)
        return self.client.post(at, {**self.form.given, **self.seen, self.form.name: value, **more})


@pytest.mark.every_case
@pytest.mark.parametrize("name", FORMS)
def test_both_values_are_shown_with_who_and_one_is_chosen(stage: Stage, name: str) -> None:
    form = FORMS[name]
    form.make(stage)
    if name == "agent":
        form = Form(**{**form.__dict__, "given": {"agent": str(stage.agent.pk)}})
    anna, bert = (Person(client, form, form.about(stage)) for client in (stage.client, Client()))
    bert.client.force_login(stage.user if form.by == "anna" else make.a_user("bert"))
    people.confirm_everybody()
    anna.look()
    bert.look()
    assert bert.save(form.theirs).status_code in (200, 302, 303)
    assert form.now(stage) == form.theirs
    met = anna.save(form.mine)
    assert (met.status_code, form.now(stage)) == (409, form.theirs)
    said = people.text_of(met)
    assert f"{'You' if form.by == 'anna' else 'bert'} changed this" in said
    assert f'name="take-{form.name}" value="theirs"' in said
    anna.read(met)
    take = {f"take-{form.name}": "theirs"}
    assert anna.save(form.mine, **take).status_code < 400
    assert form.now(stage) == form.theirs
    assert anna.save(form.mine).status_code < 400
    assert form.now(stage) == form.mine


def test_labels_that_somebody_else_set_meanwhile_stay(stage: Stage) -> None:
    number = stage.issue(labels=[])
    at = reverse("runs:issue-labels", args=[stage.project.pk, number])
    names = list(queries.labels(stage.project.tracker_root))[:3]
    one, two, three = names
    stage.client.post(at, {"labels": [one, two]})
    shown = {"shown": "yes", "was": [one, two]}
    stage.client.post(at, {**shown, "labels": [one, two, three]})
    answer = people.hx(stage.client, at, {**shown, "labels": [two]})  # type: ignore[arg-type]
    assert f'name="was" value="{three}"' in answer.content.decode()
    labels = queries.issue(stage.project.tracker_root, number).labels.all()
    assert {label.name for label in labels} == {two, three}


def test_a_program_that_says_what_it_read_overwrites_nothing(stage: Stage) -> None:
    """`If-Match` with the `ETag` of what was read; without it the last one's counts, as before."""
    token = api_tokens.make(stage.world.lab, stage.user, "ci", ApiToken.Scope.ACT)[1]
    program = Client(headers={"Authorization": f"Bearer {token}"})
    project = f"/api/v1/projects/{stage.project.pk}"

    def send(at: str, body: dict[str, Any], seen: str) -> Any:
        kind = "application/json"
        put = program.put if at.endswith("tracker") else program.patch
        return put(at, json.dumps(body), kind, headers={"If-Match": seen} if seen else {})

    for at, theirs, mine in (
        (f"{project}/checks", {"e2e_minutes": 7}, {"e2e_minutes": 9}),
        (f"{project}/loops", {"max_turns": 7}, {"max_turns": 9}),
        ("/api/v1/settings", {"session_cap": 3}, {"session_cap": 4}),
        (
            f"{project}/tracker",
            {"tracker": "builtin", "ready_label": "theirs"},
            {"tracker": "builtin", "ready_label": "mine"},
        ),
    ):
        seen = program.get(at)["ETag"]
        assert send(at, theirs, "").status_code == 200, at
        denied = send(at, mine, seen)
        assert (denied.status_code, denied.json()["code"]) == (412, "changed"), at
        kept = send(at, mine, program.get(at)["ETag"])
        assert (kept.status_code, kept["ETag"]) == (200, program.get(at)["ETag"])
