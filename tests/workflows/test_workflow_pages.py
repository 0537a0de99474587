"""Composite workflows on the pages: started by the form, shown, held, started again, stopped."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.core import lease
from runs.groups.terms import TaskStatus
from runs.models import Monitor, Project, Workflow, WorkflowPhase
from runs.workflows import stepper as composing
from tests import make
from tests.fakes import World
from tests.web.people import hx, text_of
from tests.world.stories import passing

pytestmark = pytest.mark.django_db(transaction=True)

FORM = {"name": "release", "phases": "work: wave\nreview: findings 10 15", "minutes": "90"}


@pytest.fixture
def project(world: World, db: None) -> Project:
    made = make.a_project()
    group = make.a_group(made, "wave", tasks=3)
    make.a_task(group, "4", TaskStatus.COMPLETED)
    make.a_group(made, "findings", tasks=1, preset="review")
    return made


def at(project: Project, *more: object) -> str:
    return "/".join((f"/projects/{project.pk}/workflows", *map(str, more)))


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def tick(world: World) -> None:
    under_way = passing(world)
    composing.look(under_way)
    lease.release(world.lab, under_way.number)


def started(client: Client, project: Project, world: World) -> Workflow:
    client.post(at(project, ""), FORM)
    tick(world)
    return Workflow.objects.get()


def fails(world: World) -> None:
    gone = {"look_at": None, "pass_at": None, "ended_at": world.clock.now}
    Monitor.objects.update(state="error", error="no such table", **gone)
    tick(world)


@pytest.mark.row("RUNE-57", "RUNE-58", level="contract")
def test_one_is_started_by_the_form_and_shows_its_phases(
    anna: Client, project: Project, world: World
) -> None:
    empty = words(text_of(anna.get(at(project, ""))))
    assert "Phases, one after the other" in empty
    assert "Open groups: findings , wave ." in empty
    answer = anna.post(at(project, ""), FORM)
    row = Workflow.objects.get()
    assert (answer.status_code, answer["Location"]) == (303, at(project, row.pk, ""))
    tick(world)
    shown = words(text_of(anna.get(at(project, row.pk, ""))))
    assert "1. work running wave , 1 of 4 completed, safety net at" in shown
    assert "2. review waiting findings , 0 of 1 completed" in shown
    assert "Ceiling 1 h 30 min, at" in shown
    assert "phase 1 of 2: work" in words(text_of(anna.get(at(project, ""))))
    second = row.phases.get(number=2)
    assert (second.timeout_seconds, second.net_seconds) == (600, 900)


@pytest.mark.row("C-25", level="contract")
@pytest.mark.parametrize("is_htmx", [True, False])
def test_a_held_one_says_why_and_goes_on_by_a_button(
    anna: Client, project: Project, world: World, is_htmx: bool
) -> None:
    row = started(anna, project, world)
    fails(world)
    address = at(project, row.pk, "")
    shown = words(text_of(anna.get(address)))
    assert "It waits for you: phase work failed: no such table." in shown
    assert "Start this phase again" in shown
    send: Any = hx if is_htmx else Client.post
    answer = send(anna, at(project, row.pk, "phases/1/restart"), {})
    assert answer.status_code == (200 if is_htmx else 303)
    if is_htmx:
        assert 'hx-target="#workflow-phases"' in text_of(answer)
    row.refresh_from_db()
    assert row.state == "running"
    assert "Start this phase again" not in text_of(anna.get(address))
    answer = hx(anna, at(project, row.pk, "phases/1/restart"), {})
    assert "does not wait for this phase" in text_of(answer)


@pytest.mark.row("C-25", level="contract")
def test_a_held_one_stands_under_needs_you_itself_until_it_goes_on(
    anna: Client, project: Project, world: World
) -> None:
    row = started(anna, project, world)
    assert "workflow release" not in needs_you(anna)
    fails(world)
    shown = needs_you(anna)
    assert "demo workflow release waits for you phase work failed: no such table." in words(shown)
    assert f'href="{at(project, row.pk, "")}"' in shown
    assert "its monitor failed" not in shown  # which is the same, told once
    hx(anna, at(project, row.pk, "phases/1/restart"), {})
    assert "workflow release" not in needs_you(anna)
    tick(world)
    project.task_groups.get(name="wave").delete()
    tick(world)
    assert "phase work failed: the group wave is gone" in words(needs_you(anna))
    hx(anna, at(project, row.pk, "stop"), {})
    assert "workflow release" not in needs_you(anna)


def needs_you(client: Client) -> str:
    html = text_of(client.get("/"))
    return html[html.index('id="needs-you"') :].partition("</section>")[0]


def test_the_page_of_its_group_leads_to_the_workflow(
    anna: Client, project: Project, world: World
) -> None:
    row = started(anna, project, world)
    group = f"/projects/{project.pk}/groups/{row.phases.get(number=1).group_id}/"
    shown = text_of(anna.get(group))
    assert f'href="{at(project, row.pk, "")}"' in shown
    assert "release , phase work" in words(shown)
    fails(world)
    assert "start the phase again on the page of its workflow" in words(text_of(anna.get(group)))


def test_a_phase_whose_group_is_gone_cannot_begin_again(
    anna: Client, project: Project, world: World
) -> None:
    row = started(anna, project, world)
    project.task_groups.get(name="wave").delete()
    tick(world)
    assert "wave, deleted" in words(text_of(anna.get(at(project, row.pk, ""))))
    answer = hx(anna, at(project, row.pk, "phases/1/restart"), {})
    assert answer.status_code == 409
    assert "closed or gone" in text_of(answer)


def test_it_is_stopped_once(anna: Client, project: Project, world: World) -> None:
    row = started(anna, project, world)
    assert "The workflow was stopped" in text_of(hx(anna, at(project, row.pk, "stop"), {}))
    assert "It had ended already" in text_of(hx(anna, at(project, row.pk, "stop"), {}))
    shown = words(text_of(anna.get(at(project, row.pk, ""))))
    assert "It ended: stopped by a person." in shown
    assert 'id="workflow-stop"' not in text_of(anna.get(at(project, row.pk, "")))


@pytest.mark.parametrize(
    ("second", "said", "tone"),
    [("complete", "complete", "good"), ("timed out", "partial results", "warn")],
)
def test_one_that_ended_without_a_phase_is_not_shown_as_whole(
    anna: Client, project: Project, world: World, second: str, said: str, tone: str
) -> None:
    row = started(anna, project, world)
    ended = {"ended_at": world.clock.now}
    row.phases.filter(number=1).update(state="complete", **ended)
    row.phases.filter(number=2).update(state=second, **ended)
    Workflow.objects.update(state="complete", look_at=None, **ended)
    for address in (at(project, ""), at(project, row.pk, "")):
        assert f'<span class="pill {tone}">{said}</span>' in text_of(anna.get(address))
    feed = words(text_of(anna.get(at(project, row.pk, "")))).partition("Timeline")[2]
    assert feed.startswith(" phase work began")
    assert "was started: work, review by anna" in feed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"name": ""}, "Give it a name.", id="no name"),
        pytest.param({"phases": ""}, "Write at least one phase.", id="no phases"),
        pytest.param({"phases": "work wave"}, "Line 1 is no phase", id="no colon"),
        pytest.param(
            {"phases": "a: nowhere"}, "Phase 1: There is no open group nowhere", id="no group"
        ),
        pytest.param({"phases": "a: wave 30 20"}, "is not shorter than", id="a short net"),
        pytest.param({"minutes": "x"}, "Write a number.", id="no number"),
    ],
)
def test_what_does_not_fit_is_said_at_its_field(
    anna: Client, project: Project, change: dict[str, str], said: str
) -> None:
    answer = anna.post(at(project, ""), {**FORM, **change})
    assert answer.status_code == 422
    assert said in text_of(answer)
    assert not Workflow.objects.exists()


def test_who_may_only_look_sees_no_button(vera: Client, anna: Client, project: Project, world: World) -> None:  # fmt: skip
    row = started(anna, project, world)
    fails(world)
    assert "Start one" not in text_of(vera.get(at(project, "")))
    assert "Start this phase again" not in text_of(vera.get(at(project, row.pk, "")))
    assert vera.post(at(project, ""), FORM).status_code == 403
    assert vera.post(at(project, row.pk, "stop")).status_code == 403
    assert WorkflowPhase.objects.get(number=1).state == "error"


def test_its_page_costs_the_same_for_two_and_for_many_phases(
    anna: Client, project: Project, world: World
) -> None:
    few = started(anna, project, world)
    lines = [
        f"p{number}: {make.a_group(project, f'g{number}', tasks=1).name}" for number in range(9)
    ]
    anna.post(at(project, ""), {**FORM, "phases": "\n".join(lines)})
    many = Workflow.objects.exclude(pk=few.pk).get()
    anna.get(at(project, few.pk, ""))
    counts = []
    for row in (few, many):
        with CaptureQueriesContext(connection) as asked:
            anna.get(at(project, row.pk, ""))
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_a_refresh_without_news_is_304(anna: Client, project: Project, world: World) -> None:
    row = started(anna, project, world)
    first = anna.get(at(project, row.pk, "live"), headers={"HX-Request": "true"})
    assert 'hx-target="#workflow-phases"' in text_of(first)
    again = anna.get(at(project, row.pk, "live"), headers={"HX-PTag": first["HX-PTag"]})
    assert again.status_code == 304
    fails(world)
    later = anna.get(at(project, row.pk, "live"), headers={"HX-PTag": first["HX-PTag"]})
    assert "Start this phase again" in text_of(later)
