"""The page *Loops* of a project, without JavaScript: what it shows, stores and refuses."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs.core.states import CompletionPolicy
from runs.loop_settings import settings_acts
from runs.loop_settings.settings_acts import LoopSettingsRefused
from runs.loops.roles import ISSUES
from runs.models import AgentProfile, LoopMemory, LoopRole, LoopTerms, Notice, Project
from tests import make
from tests.fakes import START, World
from tests.specs.test_pages import said

pytestmark = pytest.mark.django_db

TERMS = {
    **{"is_on": "on", "is_persistent": "no", "profile_id": "", "completion": "LOOP_COMPLETE"},
    **{"cancellation": "", "required": "", "max_turns": "50", "max_seconds": "14400"},
    **{"max_cost": "", "max_turn_seconds": "", "cooldown_seconds": "0", "idle_seconds": "300"},
    **{"pause_seconds": "30"},
    **{"check_in_seconds": "", "answer_seconds": "600", "failures": "3", "recoveries": "3"},
    **{"same_event": "3", "malformed": "3", "blocks": "3", "redispatches": "3"},
    **{"may_idle": "on", "has_tasks": "on", "has_memories": "on"},
    **{"cleans_up": "on", "resets_notes": "on"},
}
ROLE = {
    **{"name": "builder", "instructions": "Build it.", "subscriptions": "task.resume build.*"},
    **{"publishes": "build.done", "profile_id": "", "model": ""},
}


class Page:
    """The page of one project, as Anna uses it."""

    def __init__(self, client: Client, project: Project) -> None:
        self.client, self.project = client, project

    def at(self, name: str = "loop-settings", *more: object) -> str:
        return reverse(f"runs:{name}", args=[self.project.pk, *more])

    def get(self, name: str = "loop-settings", *more: object, **query: str) -> Any:
        return self.client.get(self.at(name, *more), query)

    def post(self, name: str, data: dict[str, Any] | None = None, *more: object) -> Any:
        return self.client.post(self.at(name, *more), data or {})

    def refused(self, **given: str) -> dict[str, list[str]]:
        """The fields at which the terms are refused."""
        answer = self.post("loop-terms", TERMS | given)
        assert answer.status_code == 422
        assert not LoopTerms.objects.exists()
        return dict(answer.context["form"].errors)


@pytest.fixture
def page(world: World, client: Client, operator: User) -> Page:
    client.force_login(operator)
    agent = make.an_agent("Turner", argv=["turner", "{prompt}"], mode="one_shot")
    return Page(client, make.a_project(agent=agent))


@pytest.fixture
def claude() -> AgentProfile:
    return make.an_agent(
        "Claude", mode="one_shot", output="claude_stream_json", model_names=["small"]
    )


@pytest.mark.row("RALPH-84", "RALPH-86", "RALPH-10", level="contract")
def test_a_new_project_has_no_loops_and_is_recommended_one_per_issue(page: Page) -> None:
    answer = page.get()
    shown = said(answer)
    assert "One loop per issue (recommended)" in shown
    chosen = [value for value, _, _, is_chosen in answer.context["form"].modes if is_chosen]
    assert chosen == ["no"]
    for aspect in ("Isolation", "Idle cost", "Cost control", "Recovery", "Branches"):
        assert aspect in shown
    assert "No roles" in shown
    assert "labctl memory add" in shown


@pytest.mark.row("RALPH-12", level="contract")
def test_terms_are_stored_and_told_once(page: Page, world: World) -> None:
    given = {"completion": "ALL_DONE", "max_turns": "7", "required": "review.passed, tests.passed"}
    assert page.post("loop-terms", TERMS | given).url == page.at()
    row = LoopTerms.objects.get()
    assert (row.is_on, row.completion, row.max_turns) == (True, "ALL_DONE", 7)
    assert row.required == ["review.passed", "tests.passed"]
    told = Notice.objects.get()
    assert (told.project, told.by) == (page.project, "anna")
    assert "completion: ALL_DONE" in told.text
    assert "max turns: 7" in told.text
    page.post("loop-terms", TERMS | given)
    assert Notice.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"completion": "two words"}, "completion"),
        ({"cancellation": "LOOP_COMPLETE"}, "cancellation"),
        ({"required": "a b..c"}, "required"),
        ({"max_turns": "0"}, "max_turns"),
        ({"max_seconds": "99999999999999999999"}, "max_seconds"),
        ({"max_seconds": "31536001"}, "max_seconds"),
        ({"failures": "x"}, "failures"),
        ({"same_event": "1"}, "same_event"),
        ({"cooldown_seconds": "86401"}, "cooldown_seconds"),
        ({"is_persistent": "perhaps"}, "is_persistent"),
        ({"profile_id": "999"}, "profile_id"),
        ({"max_cost": "0"}, "max_cost"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(page: Page, given: dict[str, str], field: str) -> None:
    assert list(page.refused(**given)) == [field]


@pytest.mark.row("C-46", level="contract")
def test_a_cost_limit_needs_an_agent_that_tells_its_cost(page: Page, claude: AgentProfile) -> None:
    assert "Turner does not tell what a turn costs" in page.refused(max_cost="5")["max_cost"][0]
    page.post("loop-terms", TERMS | {"max_cost": "5", "profile_id": str(claude.pk)})
    assert LoopTerms.objects.get().max_cost == Decimal(5)
    turner = AgentProfile.objects.get(name="Turner")
    answer = page.post("loop-role-new", ROLE | {"profile_id": str(turner.pk)})
    assert "have a limit of money" in answer.context["form"].errors["profile_id"][0]


def test_gates_and_agents_that_stay_open_are_refused(page: Page) -> None:
    Project.objects.update(policy=CompletionPolicy.GATES)
    assert "Gates prove the work" in page.refused()["is_on"][0]
    Project.objects.update(policy=CompletionPolicy.PULL_REQUEST)
    AgentProfile.objects.update(mode="interactive")
    assert "one-shot" in page.refused()["profile_id"][0]
    off = {name: value for name, value in TERMS.items() if name != "is_on"}
    assert page.post("loop-terms", off).status_code == 303


@pytest.mark.row("RALPH-69", "RALPH-76", level="contract")
def test_the_presets_fill_the_form_and_store_nothing(page: Page, claude: AgentProfile) -> None:
    Project.objects.update(agent=claude)
    form = page.get(preset="persistent").context["form"]
    values = {name: form[name].value() for name in form.fields}
    assert (values["max_turns"], values["max_seconds"]) == (10_000, 86_400)
    assert (values["max_cost"], values["is_persistent"]) == (Decimal("50.00"), "yes")
    assert (values["has_memories"], values["has_tasks"]) == (True, True)
    assert (values["check_in_seconds"], values["answer_seconds"]) == (300, 600)
    assert not LoopTerms.objects.exists()
    sent = {
        name: str(value)
        for name, value in values.items()
        if value is not None and value is not False
    }
    answer = page.post("loop-terms", sent | {"is_on": "on"})
    assert (answer.status_code, answer.context and answer.context["form"].errors) == (303, None)
    row = LoopTerms.objects.get()
    assert (row.is_persistent, row.max_turns, row.max_cost) == (True, 10_000, 50)
    form = page.get(preset="per_issue").context["form"]
    assert (form["max_turns"].value(), form["is_persistent"].value()) == (50, "no")
    assert page.get(preset="hope").status_code == 404


@pytest.mark.row("RALPH-62", "RALPH-85", level="contract")
def test_a_loop_that_stays_needs_a_role_for_task_resume(page: Page) -> None:
    page.post("loop-role-new", ROLE | {"subscriptions": "build.done"})
    stays = TERMS | {"is_persistent": "yes"}
    answer = page.post("loop-terms", stays)
    assert "No role subscribes to task.resume" in answer.context["form"].errors["is_persistent"][0]
    assert not LoopTerms.objects.exists()
    given = {"resume_name": "looker", "resume_instructions": "Take the next issue."}
    assert page.post("loop-terms", stays | given).status_code == 303
    row = LoopRole.objects.get(name="looker")
    assert row.subscriptions == ["task.resume"]
    assert LoopTerms.objects.get().is_persistent
    assert "No role subscribes" in said(
        page.client.post(page.at("loop-role-remove", row.pk), follow=True)
    )
    assert LoopRole.objects.count() == 2


@pytest.mark.row("RALPH-68", level="contract")
def test_a_template_of_a_role_is_offered_and_can_be_saved_as_it_is(page: Page) -> None:
    at = page.at("loop-role-new")
    assert f"{at}?template=issues" in page.get().content.decode()
    form = page.client.get(at, {"template": "issues"}).context["form"]
    given = {name: form[name].value() or "" for name in form.fields}
    text = given["instructions"]
    for words in ("one at a time", "labctl next", "tests", "labctl pr create"):
        assert words in text
    for words in ("labctl issue comment", "labctl memory add", "issues.none"):
        assert words in text
    assert not LoopRole.objects.exists()
    assert page.post("loop-role-new", given).status_code == 303
    assert LoopRole.objects.get().role == ISSUES
    assert page.post("loop-terms", TERMS | {"is_persistent": "yes"}).status_code == 303
    assert page.client.get(at, {"template": "hope"}).context["form"]["name"].value() is None


def test_a_role_for_task_resume_with_a_mistake_stores_nothing(page: Page) -> None:
    given = {"is_persistent": "yes", "resume_name": "coordinator", "resume_instructions": "x"}
    assert list(page.refused(**given)) == ["resume_name"]
    assert list(page.refused(**given | {"resume_name": "a", "resume_instructions": ""})) == [
        "resume_instructions"
    ]
    assert not LoopRole.objects.exists()


def test_roles_are_added_changed_and_removed(page: Page, claude: AgentProfile) -> None:
    given = ROLE | {"profile_id": str(claude.pk), "model": "small"}
    assert page.post("loop-role-new", given).url == page.at()
    row = LoopRole.objects.get()
    assert (row.subscriptions, row.publishes) == (["task.resume", "build.*"], ["build.done"])
    assert (row.profile, row.model) == (claude, "small")
    assert "builder" in said(page.get())
    assert "Edit builder" in said(page.get("loop-role", row.pk))
    changed = given | {"name": "maker", "seen": settings_acts.mark(row)}
    assert page.post("loop-role", changed, row.pk).status_code == 303
    assert LoopRole.objects.get().name == "maker"
    page.post("loop-role-remove", {}, row.pk)
    assert not LoopRole.objects.exists()
    texts = list(Notice.objects.order_by("pk").values_list("text", flat=True))
    assert texts == [
        "role builder of loops was added",
        "role maker of loops was changed",
        "role maker of loops was removed",
    ]


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"name": "Builder"}, "name", "Two roles are called"),
        ({"name": "coordinator"}, "name", "No role can be called"),
        ({"name": ""}, "name", "Write a name"),
        ({"instructions": " "}, "instructions", "Write what it does"),
        ({"subscriptions": "LOOP_COMPLETE"}, "subscriptions", "reaches no role"),
        ({"subscriptions": "*"}, "subscriptions", "reaches no role"),
        ({"subscriptions": "a..b"}, "subscriptions", "is no topic"),
        ({"publishes": "build.*"}, "publishes", "is no topic"),
        ({"model": "small"}, "model", "does not offer it"),
        ({"effort": "high"}, "effort", "does not offer it"),
        ({"profile_id": "999"}, "profile_id", "no such agent"),
    ],
)
def test_a_role_is_refused_at_its_field(
    page: Page, claude: AgentProfile, given: dict[str, str], field: str, words: str
) -> None:
    make.an_agent("Another", mode="one_shot", efforts=["high"])
    page.post("loop-role-new", ROLE)
    answer = page.post("loop-role-new", ROLE | {"name": "other"} | given)
    assert answer.status_code == 422
    (wrong,) = answer.context["form"].errors.items()
    assert (wrong[0], words in wrong[1][0]) == (field, True)
    assert LoopRole.objects.count() == 1


def test_what_somebody_changed_meanwhile_is_not_overwritten(page: Page, world: World) -> None:
    shown = page.get().context["form"]["seen"].value()
    values = {"max_turns": 9}
    settings_acts.store_terms(world.lab, page.project, values, by="bert")
    answer = page.post("loop-terms", TERMS | {"seen": shown})
    assert answer.status_code == 409
    (both,) = answer.context["form"].conflict.fields
    assert (answer.context["form"].conflict.by, both.mine, both.theirs) == ("bert", "50", "9")
    again = answer.context["form"].data["seen"]
    assert page.post("loop-terms", TERMS | {"seen": again}).status_code == 303
    assert LoopTerms.objects.get().max_turns == 50


def test_memories_are_listed_and_removed(page: Page, world: World) -> None:
    for number in range(3):
        LoopMemory.objects.create(
            project=page.project, text=f"<b>fact {number}</b>", by="an agent", at=START
        )
    assert "<b>fact 1</b>" in said(page.get())
    row = LoopMemory.objects.get(text="<b>fact 1</b>")
    page.post("loop-memory-remove", {}, row.pk)
    assert LoopMemory.objects.count() == 2
    again = page.client.post(page.at("loop-memory-remove", row.pk), follow=True)
    assert "Nothing was changed" in said(again)
    assert Notice.objects.get().text == f"memory {row.pk} of loops was removed"


def test_all_roles_are_replaced_or_none(page: Page, world: World) -> None:
    lab, project = world.lab, page.project
    one = {"name": "a", "instructions": "x", "subscriptions": ["a.b"]}
    two = {"name": "b", "instructions": "x", "subscriptions": ["b.c"]}
    assert settings_acts.replace(lab, project, {"max_turns": 4}, [one, two], by="anna")
    assert not settings_acts.replace(lab, project, {"max_turns": 4}, [one, two], by="anna")
    assert settings_acts.replace(lab, project, {}, [two, one], by="anna")
    assert [row.name for row in LoopRole.objects.all()] == ["b", "a"]
    wrong = {**one, "subscriptions": []}
    with pytest.raises(LoopSettingsRefused) as refused:
        settings_acts.replace(lab, project, {"max_turns": 5}, [two, wrong], by="anna")
    assert list(refused.value.fields) == ["roles.1.subscriptions"]
    assert [row.name for row in LoopRole.objects.all()] == ["b", "a"]
    assert LoopTerms.objects.get().max_turns == 4
    many = [{**one, "name": f"r{number}"} for number in range(21)]
    with pytest.raises(LoopSettingsRefused):
        settings_acts.replace(lab, project, {}, many, by="anna")


def test_the_page_asks_a_fixed_number_of_queries(page: Page) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            page.get()
        return len(queries)

    page.get()
    before = count()
    for number in range(150):
        LoopMemory.objects.create(project=page.project, text="x", by="an agent", at=START)
        if number < 5:
            page.post("loop-role-new", ROLE | {"name": f"r{number}"})
    assert count() <= before
    assert "The newest 100 of 150" in said(page.get())


def test_who_may_only_look_sees_the_settings_and_no_form(
    page: Page, client: Client, world: World
) -> None:
    page.post("loop-role-new", ROLE)
    client.force_login(make.a_user("vera", operator=False))
    shown = said(page.get())
    assert "builder" in shown
    assert "Isolation" in shown
    assert "Save loop settings" not in shown
    assert page.post("loop-terms", TERMS).status_code == 403
    assert page.get("loop-role-new").status_code == 403


def test_automatic_work_looks_for_issues_as_often_as_loops_want_it(page: Page) -> None:
    page.post("loop-terms", TERMS | {"idle_seconds": "240"})
    page.project.refresh_from_db()
    assert page.project.poll_seconds == 240
    page.post("loop-terms", {name: said for name, said in TERMS.items() if name != "is_on"})
    page.project.refresh_from_db()
    assert page.project.poll_seconds is None
