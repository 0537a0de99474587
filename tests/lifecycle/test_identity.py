"""Which sessions are runs, and whose (LAB-01 to LAB-07), on real tmux."""

from __future__ import annotations

import pytest

from runs.lifecycle import stop
from runs.models import Notice, Run
from runs.stop_project import stop_project
from tests.world.stories import look, ready, start

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.row("LAB-01", "LAB-10", level="real")
def test_a_session_made_by_hand_is_listed_as_an_adopted_run(real):
    real.project()
    real.by_hand("demo~2~afk-7")
    look(real)
    run = Run.objects.get()
    assert (run.issue_key, run.slot, run.kind, run.is_adopted, run.state) == (
        "7",
        2,
        "manual",
        True,
        "working",
    )
    first_seen = run.started_at
    look(real)
    run.refresh_from_db()
    assert run.started_at == first_seen
    assert Notice.objects.filter(kind="run.adopted").count() == 1


@pytest.mark.row("LAB-02", level="real")
def test_the_automatic_marker_survives_and_the_run_is_reaped_alike(real):
    real.project()
    real.by_hand("demo~2~afk-auto-7")
    real.memory.add_pull("demo", "afk/7")
    look(real)
    run = Run.objects.get()
    assert (run.kind, run.outcome) == ("auto", "succeeded")
    assert real.session_names() == []


@pytest.mark.row("LAB-03", "LAB-06", level="real")
def test_other_sessions_become_no_runs_and_are_never_killed(real):
    real.project()
    labels = [
        "afk",
        "afk-",
        "afk-x",
        "afk-0",
        "afk--1",
        "afk-1x",
        "notafk-1",
        "AFK-1",
        "afk-auto",
        "afk-auto-",
    ]
    labels += [
        "afk-auto-0",
        "afk-autox",
        "afk-auto-auto-1",
        "afk-feature-20260608-1530",
        "review-20260608-1530",
    ]
    names = [f"demo~{label}" for label in labels] + ["login", "my-own-session", "stranger~2~afk-7"]
    for name in names:
        real.by_hand(name)
    for hours in range(3):
        real.offset = real.offset.__class__(hours=hours)
        look(real)
    assert not Run.objects.exists()
    assert real.session_names() == sorted(names)


@pytest.mark.row("LAB-04", level="real")
def test_a_dotted_project_name_works_all_the_way(real):
    project = real.project("foo.bar")
    run = start(real, project)
    assert run.session == "foo_bar~1~afk-7"
    assert real.session_names() == ["foo_bar~1~afk-7"]
    look(real)
    run.refresh_from_db()
    assert run.is_active
    assert run.last_line == "ready"
    assert stop.stop(real.lab, run, "anna")
    assert real.session_names() == []


@pytest.mark.row("LAB-05", level="real")
def test_a_project_never_owns_the_sessions_of_one_with_a_longer_name(real):
    foo, foobar = real.project("foo"), real.project("foobar")
    start(real, foo, "1")
    start(real, foobar, "1")
    assert stop_project(real.lab, foo, "anna") == 1
    assert real.session_names() == ["foobar~2~afk-1"]
    look(real)
    assert Run.objects.active().get().project == foobar


@pytest.mark.row("LAB-07", level="real")
def test_a_second_session_for_the_same_issue_is_left_alone(real):
    project = real.project()
    start(real, project, "7")
    real.by_hand("demo~5~afk-7")
    for _ in range(2):
        look(real)
    assert Run.objects.count() == 1
    assert "demo~5~afk-7" in real.session_names()


@pytest.mark.row("LAB-07", level="real")
def test_a_second_start_of_the_one_ready_issue_answers_nothing_ready(real):
    from tests.world.stories import press_start

    project = real.project()
    ready(real)
    assert press_start(real, project).answer == "started"
    assert press_start(real, project).answer == "nothing_ready"
    assert len(real.session_names()) == 1


def test_an_adopted_run_can_be_stopped_and_reaped_without_worktree_or_prompt(real):
    real.project()
    real.by_hand("demo~2~afk-7")
    look(real)
    run = Run.objects.get()
    assert stop.stop(real.lab, run, "anna")
    run.refresh_from_db()
    assert (run.outcome, run.worktree_fate, run.settled_at is not None) == ("stopped", "none", True)
    assert real.session_names() == []
