"""Marks: which session belongs to which run, also when the database was lost in between."""

from __future__ import annotations

import pytest

from runs.core import naming
from runs.lifecycle.stop import stop
from runs.machine import processes
from runs.models import Run
from tests.fakes import World
from tests.make import a_project, a_run
from tests.real import RealWorld
from tests.world.stories import look, start


def test_every_run_gets_a_mark_of_its_own(real: RealWorld) -> None:
    project = real.project()
    first, second = start(real, project, "7"), start(real, project, "8")
    assert first.mark
    assert first.mark != second.mark
    assert real.sessions.look()[first.session].marker == first.mark


@pytest.mark.row("LAB-134", level="real")
def test_a_run_whose_row_was_lost_is_found_again_and_stop_really_ends_it(real: RealWorld) -> None:
    project = real.project()
    lost = start(real, project, "7")
    Run.objects.all().delete()
    look(real)
    found = Run.objects.get()
    assert (found.is_adopted, found.mark) == (True, lost.mark)
    assert processes.marked(lost.mark)
    stop(real.lab, found, by="anna")
    assert Run.objects.get().settled_at is not None
    assert real.session_names() == []
    assert processes.marked(lost.mark) == []


@pytest.mark.django_db
def test_a_session_that_borrows_the_mark_of_another_run_is_adopted_without_it(world: World) -> None:
    project = a_project()
    run = a_run(project, "7", mark="lab-abc")
    world.sessions.appear(run.session, "lab-abc")
    world.sessions.appear("demo~2~afk-8", "lab-abc")
    look(world)
    assert Run.objects.get(issue_key="8").mark == ""
    assert run.marker(world.lab.paths) == "lab-abc"


@pytest.mark.django_db
def test_a_run_from_before_marks_were_stored_keeps_the_one_it_was_started_with(
    world: World,
) -> None:
    run = a_run(a_project())
    assert run.marker(world.lab.paths) == naming.marker(str(world.lab.paths.state), run.pk)
