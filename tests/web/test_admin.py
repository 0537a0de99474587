"""Django admin: what may be tuned, what may only be read, and what is told of it."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.admin.checks import check_admin_app
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from runs.core.states import NoticeKind
from runs.models import (
    AgentProfile,
    Fixer,
    Host,
    LoopTerms,
    Notice,
    Project,
    Run,
    Settings,
    StartRequest,
    Tick,
    Validation,
    WatchSession,
)
from tests import make
from tests.fakes import World
from tests.web.people import confirmed, text_of

pytestmark = pytest.mark.django_db


def test_every_class_of_the_admin_is_right() -> None:
    """They are loaded with the addresses, which may be after Django's own look at them."""
    import_module("labsite.urls")

    assert Run in site._registry
    assert check_admin_app(None) == []


SETTINGS = {
    "tick_seconds": 30,
    "launch_seconds": 45,
    "watch_seconds": 60,
    "run_budget_minutes": 45,
    "quiet_minutes": 15,
    **dict.fromkeys(
        ("run_tokens_limit", "run_cost_limit", "day_tokens_limit", "day_cost_limit"), 0
    ),
    "nudges": "on",
    "session_cap": 6,
    "sweep_minutes": 10,
    "rescue_days": 14,
    "output_days": 30,
    "recording_mb": 20,
    "fold_days": 7,
    "delivery_days": 90,
    "people_percent": 40,
    "disk_quota_mb": 20480,
    "git_timeout_seconds": 60,
    "nofile_limit": 16384,
    "refresh_seconds": 4,
    "agent": "",
    "model": "",
    "effort": "",
}
RANGES = [
    ("tick_seconds", 5, 600),
    ("launch_seconds", 5, 3600),
    ("watch_seconds", 5, 3600),
    ("run_budget_minutes", 1, 10080),
    ("quiet_minutes", 0, 10080),
    ("session_cap", 1, 500),
    ("sweep_minutes", 1, 1440),
    ("rescue_days", 1, 365),
    ("output_days", 1, 3650),
    ("recording_mb", 0, 1000),
    ("fold_days", 1, 3650),
    ("delivery_days", 1, 3650),
    ("people_percent", 0, 95),
    ("git_timeout_seconds", 1, 3600),
    ("nofile_limit", 0, 1048576),
    ("refresh_seconds", 1, 60),
]


@pytest.fixture
def admin(client: Client, operator: User, world: World) -> Client:
    Settings.current()
    Settings.objects.update(agent=None)
    client.force_login(operator)
    return confirmed(client)


def _save(admin: Client, **changed: Any) -> Any:
    return admin.post(reverse("admin:runs_settings_change", args=[1]), SETTINGS | changed)


def _errors(answer: Any) -> dict[str, list[str]]:
    return dict(answer.context["adminform"].form.errors)


@pytest.mark.row("X-08", "LAB-27", level="contract")
def test_budgets_caps_and_intervals_are_changed_and_hold_at_once(
    admin: Client, world: World
) -> None:
    answer = _save(admin, tick_seconds=60, run_budget_minutes=30)
    assert answer.status_code == 302
    now = Settings.current()
    assert (now.tick_seconds, now.run_budget_minutes, now.session_cap) == (60, 30, 6)


@pytest.mark.row("X-08", level="contract")
def test_a_change_is_told_on_the_timeline_with_the_name(
    admin: Client, world: World, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        _save(admin, tick_seconds=60, model="")
    told = Notice.objects.get()
    assert (told.kind, told.by, told.at) == (NoticeKind.SETTING_CHANGED, "anna", world.clock.now)
    assert told.text == "reaper interval (seconds) changed from 30 to 60"
    assert world.bell.rings == 1


def test_saving_without_a_change_tells_nothing(admin: Client) -> None:
    _save(admin)
    assert not Notice.objects.exists()


@pytest.mark.every_case
@pytest.mark.row("X-08", level="contract")
@pytest.mark.parametrize(("field", "low", "high"), RANGES)
def test_numbers_outside_their_range_are_refused_at_the_field(
    admin: Client, field: str, low: int, high: int
) -> None:
    for wrong in (low - 1, high + 1):
        answer = _save(admin, **{field: wrong})
        assert answer.status_code == 200
        assert list(_errors(answer)) == [field]
    for right in (low, high):
        assert _save(admin, **{field: right}).status_code == 302
    assert Notice.objects.count() == 2


@pytest.mark.row("X-08", level="contract")
def test_each_number_has_its_range_in_its_help(admin: Client) -> None:
    page = text_of(admin.get(reverse("admin:runs_settings_change", args=[1])))
    for _field, low, high in RANGES:
        assert f"From {low} to {high}." in page


def test_the_settings_are_one_row_that_is_neither_added_nor_removed(admin: Client) -> None:
    listed = admin.get(reverse("admin:runs_settings_changelist"))
    assert listed.url == reverse("admin:runs_settings_change", args=[1])
    assert admin.get(reverse("admin:runs_settings_add")).status_code == 403
    assert (
        admin.post(reverse("admin:runs_settings_delete", args=[1]), {"post": "yes"}).status_code
        == 403
    )
    assert Settings.objects.count() == 1


@pytest.mark.row("LAB-128", level="contract")
def test_model_and_effort_are_closed_lists_of_the_agent(admin: Client) -> None:
    agent = make.an_agent(model_names=["small", "large"], efforts=["low"])
    answer = _save(admin, agent=agent.pk, model="enormous", effort="high")
    assert set(_errors(answer)) == {"model", "effort"}
    assert "small, large" in _errors(answer)["model"][0]
    assert set(_errors(_save(admin, model="small"))) == {"model"}
    assert _save(admin, agent=agent.pk, model="large", effort="low").status_code == 302
    assert "agent changed from not set to Test agent" in Notice.objects.get().text


PROFILE = {
    "name": "My agent",
    "mode": "interactive",
    "argv": '["agent", "{prompt}"]',
    "env": "{}",
    "trust": "",
    "model_names": "[]",
    "efforts": "[]",
    "login_command": "[]",
    "output": "",
    "resume_argv": "[]",
}


@pytest.mark.parametrize(
    ("field", "typed", "says"),
    [
        pytest.param("argv", "agent {prompt}", "valid JSON", id="not JSON"),
        pytest.param("argv", '"agent {prompt}"', "JSON list of strings", id="a shell line"),
        pytest.param("argv", '["agent"]', "{prompt}", id="the task never arrives"),
        pytest.param("argv", '["agent", 7, "{prompt}"]', "JSON list of strings", id="a number"),
        pytest.param("env", '{"A": 1}', "JSON object", id="a number in the environment"),
        pytest.param("env", '["A"]', "JSON object", id="a list as environment"),
        pytest.param("model_names", '"small"', "JSON list", id="models that are no list"),
        pytest.param("login_command", "{}", "JSON list", id="a login check that is no list"),
        pytest.param("resume_argv", "7", "JSON list", id="a resume command that is no list"),
        pytest.param("resume_argv", '["x"]', "{session}", id="a resume command of no session"),
        pytest.param("output", "claude_stream_json", "one-shot", id="a screen read as lines"),
        pytest.param("output", "nonsense", "valid choice", id="an unknown output"),
    ],
)
def test_a_profile_that_could_not_be_started_is_refused_at_its_field(
    admin: Client, field: str, typed: str, says: str
) -> None:
    answer = admin.post(reverse("admin:runs_agentprofile_add"), PROFILE | {field: typed})
    assert answer.status_code == 200
    assert list(_errors(answer)) == [field]
    assert says in _errors(answer)[field][0]
    assert not AgentProfile.objects.filter(name="My agent").exists()


@pytest.mark.row("X-05", level="contract")
def test_a_profile_is_kept_and_told_without_its_environment(admin: Client) -> None:
    assert admin.post(reverse("admin:runs_agentprofile_add"), PROFILE).status_code == 302
    profile = AgentProfile.objects.get(name="My agent")
    changed = PROFILE | {"env": '{"API_KEY": "very-secret"}', "mode": "one_shot"}
    admin.post(reverse("admin:runs_agentprofile_change", args=[profile.pk]), changed)
    texts = list(Notice.objects.order_by("pk").values_list("text", flat=True))
    assert texts == [
        "agent profile My agent was added",
        "agent profile My agent: mode changed from interactive to one_shot; environment changed",
    ]
    removed = {"action": "delete_selected", "_selected_action": profile.pk, "post": "yes"}
    admin.post(reverse("admin:runs_agentprofile_changelist"), removed)
    assert Notice.objects.latest("pk").text == "agent profile My agent was removed"


@pytest.mark.row("X-08", level="contract")
def test_a_project_has_a_budget_of_its_own(admin: Client) -> None:
    project = make.a_project()
    address = reverse("admin:runs_project_change", args=[project.pk])
    given = {
        "agent": "",
        "run_budget_minutes": 30,
        "ready_label": "ready-for-agent",
        "policy": "pull_request",
        "parallel_runs": 1,
        "run_tokens_limit": "",
        "run_cost_limit": "",
        "day_tokens_limit": 0,
        "day_cost_limit": 0,
        "check_minutes": 30,
        "fix_attempts": 2,
        "signals": "on",
    }
    assert admin.post(address, given).status_code == 302
    told = Notice.objects.get()
    assert told.text == "project demo: run budget (minutes) changed from not set to 30"
    assert told.project == project
    answer = admin.post(address, given | {"run_budget_minutes": 10081})
    assert list(_errors(answer)) == ["run_budget_minutes"]
    LoopTerms.objects.create(project=project, is_on=True)
    answer = admin.post(address, given | {"policy": "gates"})
    assert list(_errors(answer)) == ["policy"]


def test_saving_a_project_leaves_alone_what_the_worker_wrote_meanwhile(
    admin: Client, monkeypatch: Any
) -> None:
    project = make.a_project(state="cloning")
    save = Project.save

    def save_later(self: Project, *args: Any, **kwargs: Any) -> None:
        Project.objects.filter(pk=project.pk).update(state="ready")
        save(self, *args, **kwargs)

    monkeypatch.setattr(Project, "save", save_later)
    address = reverse("admin:runs_project_change", args=[project.pk])
    admin.post(
        address,
        {
            "agent": "",
            "run_budget_minutes": 30,
            "ready_label": "ready-for-agent",
            "policy": "pull_request",
            "parallel_runs": 1,
            "run_tokens_limit": "",
            "run_cost_limit": "",
            "day_tokens_limit": 0,
            "day_cost_limit": 0,
            "check_minutes": 30,
            "fix_attempts": 2,
        },
    )
    project.refresh_from_db()
    assert (project.state, project.run_budget_minutes) == ("ready", 30)


@pytest.mark.row("X-05", level="contract")
def test_a_token_is_neither_shown_nor_taken_in_admin(admin: Client) -> None:
    project = make.a_project(token="ghp_very-secret")
    address = reverse("admin:runs_project_change", args=[project.pk])
    for page in (address, reverse("admin:runs_project_changelist"), f"{address[:-7]}history/"):
        text = text_of(admin.get(page))
        assert "very-secret" not in text
        assert "gAAAA" not in text
    admin.post(
        address,
        {
            "run_budget_minutes": 5,
            "ready_label": "ready",
            "policy": "pull_request",
            "parallel_runs": 1,
            "run_tokens_limit": "",
            "run_cost_limit": "",
            "day_tokens_limit": 0,
            "day_cost_limit": 0,
            "check_minutes": 30,
            "fix_attempts": 2,
            "token": "stolen",
        },
    )
    project.refresh_from_db()
    assert project.token == "ghp_very-secret"


def test_projects_are_not_added_or_removed_here(admin: Client) -> None:
    project = make.a_project()
    assert admin.get(reverse("admin:runs_project_add")).status_code == 403
    answer = admin.post(reverse("admin:runs_project_delete", args=[project.pk]), {"post": "yes"})
    assert answer.status_code == 403
    assert Project.objects.exists()


HISTORY = ["run", "notice", "tick", "host", "startrequest", "watchsession", "validation", "fixer"]


@pytest.mark.every_case
@pytest.mark.parametrize("model", HISTORY)
def test_what_happened_can_be_read_and_not_changed(admin: Client, world: World, model: str) -> None:
    run = make.a_run(make.a_project())
    host = Host.objects.create(name="local")
    now = world.clock.now
    watch = WatchSession.objects.create(project=run.project, opened_at=now)
    at = {"project": run.project, "host": "local", "number": 1, "mark": "secret-mark"}
    validation = Validation.objects.create(
        session=watch, count=1, minutes=1, most_fixers=1, began_at=now, **at
    )
    fixer = Fixer.objects.create(validation=validation, branch="lab/fix-1", asked_at=now, **at)
    rows = {
        "watchsession": watch,
        "validation": validation,
        "fixer": fixer,
        "run": run,
        "host": host,
        "tick": Tick.objects.create(host=host, at=world.clock.now),
        "notice": Notice.objects.create(
            at=world.clock.now, kind="run.step", text="a step", run=run
        ),
        "startrequest": StartRequest.objects.create(
            project=run.project, by="anna", at=world.clock.now
        ),
    }
    row = rows[model]
    assert admin.get(reverse(f"admin:runs_{model}_changelist")).status_code == 200
    change = reverse(f"admin:runs_{model}_change", args=[row.pk])
    page = admin.get(change)
    assert page.status_code == 200
    assert 'name="_save"' not in text_of(page)
    assert "secret-mark" not in text_of(page)
    assert admin.post(change, {"outcome": "succeeded", "text": "forged"}).status_code == 403
    assert admin.get(reverse(f"admin:runs_{model}_add")).status_code == 403
    delete = reverse(f"admin:runs_{model}_delete", args=[row.pk])
    assert admin.post(delete, {"post": "yes"}).status_code == 403
    row.refresh_from_db()


@pytest.mark.parametrize("rows", [1, 50])
def test_a_list_takes_the_same_number_of_queries_whatever_its_length(
    admin: Client, django_assert_max_num_queries: Any, rows: int
) -> None:
    project = make.a_project()
    for number in range(rows):
        make.a_run(project, str(number + 1), slot=number + 1)
    with django_assert_max_num_queries(9):
        admin.get(reverse("admin:runs_run_changelist"))


@pytest.mark.row("X-10", level="contract")
def test_admin_is_closed_to_people_who_only_look(
    client: Client, viewer: User, world: World
) -> None:
    client.force_login(viewer)
    answer = _save(client, tick_seconds=60)
    assert answer.status_code == 403
    assert "Only admins may do this." in text_of(answer)
    assert Settings.current().tick_seconds == 30


def test_admin_pages_hold_nothing_that_the_policy_forbids(admin: Client) -> None:
    agent = make.an_agent()
    for name, args in (
        ("index", []),
        ("runs_settings_change", [1]),
        ("runs_agentprofile_change", [agent.pk]),
    ):
        answer = admin.get(reverse(f"admin:{name}", args=args))
        page = text_of(answer)
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        assert " style=" not in page
        assert "<style" not in page
        assert "<script>" not in page
        assert " onclick=" not in page
        assert "admin.css" in page


def test_a_profile_that_somebody_else_changed_meanwhile_is_not_overwritten(
    admin: Client, world: World
) -> None:
    profile = make.an_agent()
    address = reverse("admin:runs_agentprofile_change", args=[profile.pk])
    form = admin.get(address).context["adminform"].form
    given = {
        name: "" if (value := form[name].value()) is None else value
        for name in form.fields
        if form[name].value() is not False
    }
    AgentProfile.objects.filter(pk=profile.pk).update(name="Theirs")
    answer = admin.post(address, {**given, "name": "Mine"})
    assert answer.status_code == 200
    profile.refresh_from_db()
    assert profile.name == "Theirs"
    page = answer.content.decode()
    assert re.findall(r'class="said">([^<]*)', page) == ["Mine", "Theirs"]
    now = answer.context["adminform"].form
    again = {**given, "name": "Mine", "seen": now["seen"].value()}
    assert admin.post(address, {**again, "take-name": "mine"}).status_code == 302
    profile.refresh_from_db()
    assert profile.name == "Mine"
