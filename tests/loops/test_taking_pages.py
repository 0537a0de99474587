"""What the page of a run, the API and the settings show of the issues of a loop that stays."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs.core.states import NoticeKind
from runs.loop_pages import run_card
from runs.models import LoopIssue, LoopTerms, Notice, Run
from runs.web import fragments
from tests.api.program import Program
from tests.fakes import World
from tests.loops.desk import desk_of, project_of
from tests.loops.test_taking import asks, finishes, staying
from tests.specs.test_pages import said
from tests.world.stories import ready

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.row("RALPH-73", "RALPH-75", "C-46", level="contract")
def test_the_issues_of_a_loop_that_stays_stand_on_its_page_and_in_the_api(
    world: World, client: Client, operator: User
) -> None:
    client.force_login(operator)
    desk = staying(world)
    ready(world, "8", title="Second <b>")
    finishes(desk)
    asks(world, desk)
    told = {"cost": Decimal("0.50"), "tokens_in": 100, "tokens_out": 10, "turns": 2}
    LoopIssue.objects.filter(position=1).update(**told, seconds=90, pull_number=12)
    text = said(client.get(reverse("runs:run", args=[desk.run.pk])))
    table = text[text.index("#8 Second <b>") :]
    for words in ("working", "afk/8", "#7 Issue 7", "completed", "afk/7", "#12", "2", "$0.50"):
        assert words in table
        table = table[table.index(words) :]
    found = Program.of(operator).get(f"/runs/{desk.run.pk}/loop").json()["issues"]
    assert [(one["key"], one["end"], one["branch"]) for one in found] == [
        ("8", "", "afk/8"),
        ("7", "completed", "afk/7"),
    ]
    assert (found[1]["cost"], found[1]["seconds"], found[1]["pull_number"]) == (0.5, 90.0, 12)
    assert (found[0]["cost"], found[0]["turns"]) == (None, 0)
    step = Notice.objects.filter(kind=NoticeKind.RUN_STEP, text__startswith="issue 8 is begun")
    assert f"run-{desk.run.pk}" in str(fragments.topics_of(step.get())).replace(":", "-")


def test_another_loop_asks_for_no_issues(world: World) -> None:
    desk = desk_of(world, project_of(world))
    desk.begin()
    run = Run.objects.get()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        card = run_card.of(run, world.clock())
    assert card is not None
    assert card.issues == []
    assert len(queries) == 4


@pytest.mark.row("RALPH-37", "RALPH-67", level="contract")
def test_cleaning_up_and_new_notes_are_settings(world: World, operator: User) -> None:
    project = project_of(world)
    program = Program.of(operator)
    path = f"/projects/{project.pk}/loops"
    before = program.get(path).json()
    assert (before["cleans_up"], before["resets_notes"]) == (True, True)
    sent = program.send("PATCH", path, {"cleans_up": False, "resets_notes": False})
    assert sent.status_code == 200, sent.content
    row = LoopTerms.objects.get()
    assert (row.cleans_up, row.resets_notes) == (False, False)
