"""A loop that stays takes issue after issue: claims, summing up, tracker, idle, bad days, on fakes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from runs.core.states import NoticeKind, Outcome, RunKind
from runs.dispatch import scope
from runs.followups import acts as followups
from runs.followups import rules as followup_rules
from runs.forges import mirror
from runs.lifecycle import outcomes
from runs.loop_settings import settings_acts
from runs.loops import acts, issue_of_loop, taking
from runs.loops.acts import LoopRefused
from runs.loops.taking import State
from runs.models import Loop, LoopIssue, LoopTurn, Notice, Project, Run, StartRequest
from runs.watch import acts as watch
from runs.watch.session import Terms
from tests.fakes import World
from tests.loops.desk import Desk, desk_of, project_of, topic
from tests.world.stories import look, press_start, ready, work
from trackers.base import Ability

pytestmark = pytest.mark.django_db(transaction=True)
DONE = topic("LOOP_COMPLETE")


def staying(world: World, **terms: Any) -> Desk:
    """A loop that stays, on issue 7, whose first turn has begun."""
    desk = desk_of(world, project_of(world, is_persistent=True, **terms))
    desk.begin()
    return desk


def asks(world: World, desk: Desk) -> taking.Found:
    """`labctl next`, with a worker that answers at once."""
    first = taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    return (
        taking.next_issue(world.lab, desk.run, "agent", 1)
        if first.state is State.PENDING
        else first
    )


def finishes(desk: Desk) -> Any:
    """The issue at hand is done, with a commit."""
    tree = Path(Run.objects.get(pk=desk.run.pk).worktree)
    branch = desk.world.repos.trees[tree].branch
    desk.world.repos._branches(desk.world.repos.trees[tree].repo)[branch] = "c" * 40
    return desk.finish(topic("task.note"), DONE)


def loop_of(desk: Desk) -> Loop:
    return Loop.objects.select_related("run").get(run=desk.run)


@pytest.mark.row("C-50", "RALPH-64", "RALPH-75", level="contract")
def test_three_issues_in_one_loop_are_claimed_by_the_launch_pass_and_each_has_its_branch(world):
    desk = staying(world)
    for key in ("8", "9"):
        ready(world, key)
    for key in ("8", "9"):
        assert finishes(desk).do == "turn"
        found = asks(world, desk)
        assert (found.state, found.issue.issue_key) == (State.TAKEN, key)
        assert f"# Implement: Issue {key} (#{key})" in found.issue.objective
        run = Run.objects.get()
        assert (run.issue_key, run.branch) == (key, f"afk/{key}")
        assert world.repos.trees[Path(run.worktree)].branch == f"afk/{key}"
    finishes(desk)
    loop = loop_of(desk)
    assert loop.counters["completions"] == 3
    assert list(loop.issues.values_list("issue_key", "branch", "end")) == [
        ("7", "afk/7", "completed"),
        ("8", "afk/8", "completed"),
        ("9", "afk/9", "completed"),
    ]
    claimed = world.repos.claims(run.project.repo(world.lab.paths))
    assert claimed == {"7", "8", "9"}


@pytest.mark.row("C-50", level="contract")
def test_the_prompt_between_two_issues_leads_to_labctl_next_and_then_names_the_issue(world):
    desk = staying(world)
    ready(world, "8")
    between = finishes(desk).content["prompt"]
    assert "Run `labctl next`" in between
    assert "task.resume" in between
    assert "Implement: Issue 7" not in between
    asks(world, desk)
    order = desk.finish(topic("build.done"))
    assert "> # Implement: Issue 8 (#8)" in order.content["prompt"]
    assert order.content["env"]["LAB_ISSUE"] == "8"
    assert order.content["env"]["LAB_BRANCH"] == "afk/8"


@pytest.mark.row("C-50", level="contract")
def test_a_second_question_names_the_open_issue_and_claims_nothing(world):
    desk = staying(world)
    ready(world, "8")
    ready(world, "9")
    found = asks(world, desk)
    assert (found.state, found.issue.issue_key) == (State.OPEN, "7")
    finishes(desk)
    assert asks(world, desk).state is State.TAKEN
    again = asks(world, desk)
    assert (again.state, again.issue.issue_key) == (State.OPEN, "8")
    assert loop_of(desk).issues.count() == 2
    assert "8" in again.text


@pytest.mark.row("C-50", level="contract")
def test_two_at_once_wait_for_one_request(world):
    desk = staying(world)
    ready(world, "8")
    ready(world, "9")
    finishes(desk)
    for _ in range(2):
        assert taking.next_issue(world.lab, desk.run, "agent", 0).state is State.PENDING
    assert StartRequest.objects.filter(takes_for=desk.run).count() == 1
    look(world)
    assert [taking.next_issue(world.lab, desk.run, "agent", 1).issue.issue_key for _ in "ab"] == [
        "8",
        "8",
    ]


@pytest.mark.row("C-50", level="contract")
def test_an_issue_that_another_run_has_is_never_taken_twice(world):
    desk = staying(world)
    finishes(desk)
    other = press_start(world, desk.run.project, wanted="8")
    assert other.run is None
    ready(world, "8")
    taken = press_start(world, desk.run.project, wanted="8")
    assert taken.run is not None
    assert asks(world, desk).state is State.NONE
    ready(world, "9")
    assert asks(world, desk).issue.issue_key == "9"
    refused = press_start(world, desk.run.project, wanted="9")
    assert "already claimed by a run" in refused.text


@pytest.mark.row("C-31", level="contract")
def test_an_issue_that_the_loop_has_had_is_not_taken_again_even_without_its_branch(world):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    asks(world, desk)
    finishes(desk)
    run = Run.objects.get()
    world.repos._branches(run.project.repo(world.lab.paths)).pop("afk/7")
    found = asks(world, desk)
    assert found.state is State.NONE
    assert "Nothing is ready to start" in found.text


@pytest.mark.row("C-50", level="contract")
def test_what_keeps_any_start_keeps_a_loop_from_a_further_issue(world):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    world.repos.broken_claims = "git is away"
    found = asks(world, desk)
    assert (found.state, "git is away" in found.text) == (State.LATER, True)
    world.repos.broken_claims = ""
    acts.ask_stop(world.lab, desk.run, by="anna")
    assert asks(world, desk).text == taking.IS_STOPPING
    Loop.objects.update(stop_asked_at=None)
    Project.objects.update(policy="gates")
    found = asks(world, desk)
    assert found.state is State.NONE
    assert "gates prove" in found.text.lower()


@pytest.mark.row("C-50", level="contract")
def test_a_loop_of_automatic_work_takes_nothing_once_that_is_off(world):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    Run.objects.update(kind=RunKind.AUTO)
    found = asks(world, desk)
    assert found.state is State.NONE
    assert found.text.startswith("Automatic work of this project is off.")


def test_a_loop_that_does_not_stay_or_has_ended_takes_nothing(world):
    desk = desk_of(world, project_of(world))
    desk.begin()
    with pytest.raises(LoopRefused, match="works on one issue"):
        taking.next_issue(world.lab, desk.run, "agent", 0)


def test_a_worker_that_is_away_claims_nothing_later_unseen(world):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    assert taking.next_issue(world.lab, desk.run, "agent", 0).state is State.PENDING
    world.clock.forward(minutes=3)
    found = asks(world, desk)
    assert (found.state, found.text) == (
        State.LATER,
        "The worker was away when this was asked for, so nothing was claimed.",
    )
    assert loop_of(desk).issues.count() == 1


def test_a_loop_at_the_cap_takes_its_next_issue_all_the_same(world):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    from runs.models import Settings

    Settings.objects.update(session_cap=1)
    assert asks(world, desk).state is State.TAKEN


@pytest.mark.row("RALPH-73", "C-46", level="contract")
def test_each_issue_keeps_what_it_cost_and_unknown_stays_unknown(world):
    desk = staying(world)
    ready(world, "8")
    desk.finish(topic("build.done"))
    costs = {"cost": Decimal("0.25"), "tokens_in": 100, "tokens_out": 10, "seconds": 60.0}
    LoopTurn.objects.filter(number=1).update(**costs)
    issue = LoopIssue.objects.get()
    assert issue_of_loop.used(issue).cost == Decimal("0.25")
    finishes(desk)
    first = LoopIssue.objects.get()
    assert (first.turns, first.cost, first.tokens_in) == (2, None, None), "turn 2 did not tell"
    assert first.seconds == 61.0
    asks(world, desk)
    desk.finish(topic("build.done"))
    LoopTurn.objects.filter(number=3).update(**costs)
    assert LoopTurn.objects.get(number=3).issue_key == "8", "the turn that took it counts for it"
    assert issue_of_loop.used(LoopIssue.objects.get(position=2)).cost == Decimal("0.25")


@pytest.mark.row("RALPH-37", "RALPH-36", level="contract")
@pytest.mark.parametrize("resets", [True, False])
def test_notes_begin_anew_between_issues_unless_they_are_to_stay(world, resets):
    desk = staying(world, resets_notes=resets)
    desk.writes("note of issue 7")
    order = finishes(desk)
    line = "completed #7, looking for the next one"
    assert ("note of issue 7" in order.content["prompt"]) is not resets
    assert order.content["prompt"].startswith(f"## NOTES OF THE TURNS BEFORE\n\n{line}") is resets
    assert order.content["notes_number"] == int(resets)
    assert order.content["notes"] == (f"{line}\n" if resets else "")
    desk.writes(line if resets else "note of issue 7")
    ready(world, "8")
    asks(world, desk)
    first = desk.finish(topic("build.begun")).content["prompt"]
    assert ("note of issue 7" in first) is not resets
    assert loop_of(desk).are_notes_new is False
    told = Notice.objects.filter(kind=NoticeKind.LOOP_STEP, text__startswith=line)
    assert told.count() == 1


@pytest.mark.row("RALPH-65", "RALPH-67", "RALPH-74", level="contract")
@pytest.mark.parametrize("cleans", [True, False])
def test_open_tasks_events_and_changes_carry_over_unless_they_are_cleaned_up(world, cleans):
    desk = staying(world, cleans_up=cleans)
    acts.add_task(world.lab, desk.loop, "left over")
    tree = Path(desk.run.worktree)
    world.repos.trees[tree].is_dirty = True
    ready(world, "8")
    prompt = finishes(desk).content["prompt"]
    assert ("left over" in prompt) is not cleans
    assert ("task.note" in prompt) is not cleans
    found = asks(world, desk)
    assert found.state is State.TAKEN
    assert world.repos.trees[tree].is_dirty is not cleans
    assert ("kept as a rescue" in found.text) is cleans
    assert ("still in the worktree" in found.text) is not cleans


@pytest.mark.row("RALPH-48", "RALPH-49", level="contract")
def test_the_tracker_is_told_of_each_issue_as_of_a_run(world):
    world.tracker.abilities -= {Ability.STATUS}
    project = project_of(world, is_persistent=True)
    Project.objects.update(mirror="comments", working_label="ralph-working")
    desk = desk_of(world, project)
    desk.begin()
    written(world)
    assert "ralph-working" in labels(world, "7")
    ready(world, "8")
    finishes(desk)
    for _ in range(2):  # safe to repeat
        written(world)
        assert "ralph-working" not in labels(world, "7")
        assert [one.body for one in world.tracker.issue("demo", "7").comments][1:] == [
            f"Run {desk.run.pk} of labsite succeeded: commits on `afk/7`."
        ]
        world.queue.mirrors.append(desk.run.pk)
    asks(world, desk)
    written(world)
    assert "ralph-working" in labels(world, "8")
    desk.run.refresh_from_db()
    acts.ask_stop(world.lab, desk.run, by="anna")
    assert desk.finish(topic("build.done")).do == "end"
    written(world)
    assert "ralph-working" not in labels(world, "8")
    assert "ralph-working" not in labels(world, "7")
    assert len(world.tracker.issue("demo", "7").comments) == 2
    ended = LoopIssue.objects.get(position=2)
    assert (ended.end, ended.ended_at is None) == ("with_loop", False)


def test_a_loop_that_ends_between_two_issues_tells_nothing_more_of_the_last_one(world):
    world.tracker.abilities -= {Ability.STATUS}
    project = project_of(world, is_persistent=True)
    Project.objects.update(mirror="comments", working_label="ralph-working")
    desk = desk_of(world, project)
    desk.begin()
    written(world)
    finishes(desk)
    acts.ask_stop(world.lab, desk.run, by="anna")
    assert desk.finish(topic("build.done")).do == "end"
    written(world)
    bodies = [one.body for one in world.tracker.issue("demo", "7").comments]
    assert len(bodies) == 2
    assert "succeeded" in bodies[1]


def mirrored(world: World, mode: str = "comments", *without: Ability) -> Desk:
    """A loop that stays on issue 7, whose tracker is told of it."""
    world.tracker.abilities -= set(without)
    project = project_of(world, is_persistent=True)
    Project.objects.update(mirror=mode, working_label="ralph-working")
    desk = desk_of(world, project)
    desk.begin()
    written(world)
    return desk


def working(world: World) -> set[str]:
    return set(world.tracker._shelf("demo").working)


def test_an_issue_that_is_given_back_is_free_again_on_the_tracker(world):
    desk = mirrored(world)
    ready(world, "8")
    finishes(desk)
    taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    branches = world.repos._branches(desk.run.project.repo(world.lab.paths))
    branches["afk/8"] = "d" * 40
    assert taking.next_issue(world.lab, desk.run, "agent", 1).state is State.LATER
    written(world)
    assert "8" not in working(world)
    assert not world.tracker.issue("demo", "8").comments
    branches.pop("afk/8")
    ready(world, "9")
    taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    world.repos.broken_switch = "index.lock"
    taking.next_issue(world.lab, desk.run, "agent", 1)
    assert "9" in working(world), "claimed there, and not begun"
    acts.ask_stop(world.lab, desk.run, by="anna")
    assert desk.finish(topic("build.done")).do == "end"
    world.queue.mirrors.clear()  # a worker died before it could ask
    mirror.catch_up(world.lab, desk.run.project)
    written(world)
    assert "9" not in working(world)
    mirror.catch_up(world.lab, desk.run.project)
    assert not world.queue.mirrors


def test_a_late_word_about_an_issue_marks_nothing_of_the_next_one(world):
    desk = mirrored(world)
    ready(world, "8")
    finishes(desk)
    taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    written(world)  # what was asked for when 7 was completed
    assert "8" not in working(world)
    assert taking.next_issue(world.lab, desk.run, "agent", 1).state is State.TAKEN
    written(world)
    assert "8" in working(world)
    (said,) = world.tracker.issue("demo", "8").comments
    assert "works on this" in said.body


def test_a_mark_that_nobody_knows_of_is_gone_on_with(world):
    desk = mirrored(world)
    ready(world, "8")
    finishes(desk)
    taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    world.tracker.claim("demo", "8")
    Run.objects.update(mirrored=mirror.CLAIMING)  # killed before the answer was stored
    assert taking.next_issue(world.lab, desk.run, "agent", 1).state is State.TAKEN


def test_a_loop_that_goes_on_between_two_issues_tells_nothing_again_of_the_last_one(world):
    desk = mirrored(world, "comments", Ability.STATUS)
    finishes(desk)
    written(world)
    acts.ask_stop(world.lab, desk.run, by="anna")
    desk.finish(topic("build.done"))
    world.sessions.all.pop(desk.run.session, None)
    look(world)
    before = world.tracker.issue("demo", "7").comments
    run = Run.objects.get()
    followups.resume(world.lab, run, followup_rules.GO_ON, by="anna")
    for _ in range(2):
        look(world)
        work(world)
    again = Run.objects.get(continues=run)
    written(world)
    assert again.did_start
    assert world.tracker.issue("demo", "7").comments == before
    assert "ralph-working" not in labels(world, "7")


def test_nobody_is_told_later_of_issues_that_were_completed_while_nobody_wanted_to_be(world):
    desk = mirrored(world, "off", Ability.STATUS)
    ready(world, "8")
    finishes(desk)
    asks(world, desk)
    Project.objects.update(mirror="comments")
    finishes(desk)
    written(world)
    told = [len(world.tracker.issue("demo", key).comments) for key in "78"]
    assert told == [0, 1]


def test_a_completion_at_a_limit_is_a_completed_issue(world):
    desk = staying(world, max_turns=1)
    assert finishes(desk).content["code"] == 2
    run = Run.objects.get()
    assert run.outcome == Outcome.LIMIT_REACHED
    assert LoopIssue.objects.get().end == "completed"


@pytest.mark.row("C-30", "RALPH-63", level="contract")
def test_an_idle_loop_asks_the_launch_pass_each_five_minutes_and_calls_no_agent(world):
    desk = staying(world)
    finishes(desk)
    idle = desk.finish(DONE)
    assert (idle.do, idle.content["seconds"]) == ("wait", 300.0)
    turns = LoopTurn.objects.count()
    for _ in range(3):
        world.clock.forward(seconds=301)
        look(world)
        asked = desk.step(idle_turn(desk), 1)
        assert (asked.do, asked.content["seconds"]) == ("wait", 2.0)
        look(world)
        waits = desk.step(idle_turn(desk), 1)
        assert (waits.do, waits.content["seconds"]) == ("wait", 300.0)
        assert "nothing is ready to start" in waits.content["why"]
    assert LoopTurn.objects.count() == turns
    assert not StartRequest.objects.filter(takes_for=desk.run).exists()
    assert not Notice.objects.filter(kind=NoticeKind.START_REFUSED).exists()
    ready(world, "8")
    world.clock.forward(seconds=301)
    desk.step(idle_turn(desk), 1)
    look(world)
    assert desk.step(idle_turn(desk), 1).content["why"] == "issue 8 was begun"
    order = desk.step(idle_turn(desk), 1)
    assert order.do == "turn"
    prompt = order.content["prompt"]
    assert "- `task.resume`: Issue 8 was taken for this loop" in prompt
    assert "Persistent mode" not in prompt
    assert "> # Implement: Issue 8 (#8)" in prompt
    assert desk.turn.issue_key == "8"


@pytest.mark.row("C-30", "RALPH-81", level="contract")
def test_a_person_wakes_an_idle_loop_that_asks_for_an_issue(world):
    desk = staying(world)
    finishes(desk)
    desk.finish(DONE)
    world.clock.forward(seconds=301)
    assert desk.step(idle_turn(desk), 1).do == "wait"
    acts.guide(world.lab, desk.run, "look at the build", by="anna")
    order = desk.step(idle_turn(desk), 1)
    assert "look at the build" in order.content["prompt"]


def test_a_claim_that_could_not_be_begun_is_gone_on_with_and_never_made_twice(world):
    desk = staying(world)
    ready(world, "8")
    ready(world, "9")
    finishes(desk)
    world.repos.broken_fetch = "could not resolve host"
    found = asks(world, desk)
    assert found.state is State.LATER
    assert "could not resolve host" in found.text
    assert press_start(world, desk.run.project, wanted="8").run is None
    waits = desk.finish(topic("build.done"))
    assert (waits.do, "cannot be begun yet" in waits.content["why"]) == ("wait", True)
    world.repos.broken_fetch = ""
    world.repos.broken_switch = "index.lock"
    assert asks(world, desk).state is State.LATER
    world.repos.broken_switch = ""
    assert (desk.step(idle_turn(desk), 1).content["seconds"], desk.step(idle_turn(desk), 1).do) == (
        0.0,
        "turn",
    )
    assert list(loop_of(desk).issues.values_list("issue_key", flat=True)) == ["7", "8"]
    assert StartRequest.objects.filter(takes_for=desk.run, answer="started").count() == 1


def test_a_worktree_that_was_moved_before_somebody_was_killed_is_not_moved_again(world):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    tree = Path(desk.run.worktree)
    LoopIssue.objects.filter(position=2).update(fork_point="f" * 40)
    world.repos.switch(Path("/unused"), tree, "afk/8", "f" * 40, clean=True)
    world.repos.trees[tree].is_dirty = True  # somebody works on it
    assert asks(world, desk).state is State.TAKEN
    assert world.repos.trees[tree].is_dirty is True
    assert Run.objects.get().branch == "afk/8"


@pytest.mark.parametrize("how", ["closed", "branch"])
def test_an_issue_that_cannot_be_worked_on_is_given_back(world, how):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    assert Run.objects.get().issue_key == "8"
    if how == "closed":
        world.tracker.close("demo", "8")
    else:
        world.repos._branches(desk.run.project.repo(world.lab.paths))["afk/8"] = "d" * 40
    found = taking.next_issue(world.lab, desk.run, "agent", 1)
    assert found.state is State.LATER
    assert {"closed": "closed meanwhile", "branch": "is there already"}[how] in found.text
    run = Run.objects.get()
    assert (run.issue_key, run.branch) == ("7", "afk/7")
    assert LoopIssue.objects.get(position=2).end == "given_back"
    ready(world, "9")
    assert asks(world, desk).issue.issue_key == "9"


def test_a_loop_that_ends_with_a_claim_that_was_not_begun_gives_it_back(world):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    acts.ask_stop(world.lab, desk.run, by="anna")
    assert desk.finish(topic("build.done")).do == "end"
    run = Run.objects.get()
    assert (run.issue_key, run.branch) == ("7", "afk/7")
    assert LoopIssue.objects.get(position=2).end == "given_back"
    world.sessions.all.pop(run.session, None)
    look(world)
    again = press_start(world, run.project, wanted="8")
    assert again.run is not None


@pytest.mark.parametrize("is_touched", [False, True])
def test_a_branch_that_was_made_when_somebody_was_killed_goes_with_its_claim(world, is_touched):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    taking.next_issue(world.lab, desk.run, "agent", 0)
    look(world)
    tree = Path(desk.run.worktree)
    LoopIssue.objects.filter(position=2).update(fork_point="f" * 40)
    world.repos.switch(Path("/unused"), tree, "afk/8", "f" * 40, clean=True)
    world.repos.trees[tree].is_dirty = is_touched
    acts.ask_stop(world.lab, desk.run, by="anna")
    desk.finish(topic("build.done"))
    world.sessions.all.pop(desk.run.session, None)
    for _ in range(2):
        world.clock.forward(minutes=2)
        look(world)
    run = Run.objects.select_related("project").get()
    assert run.settled_at is not None
    claims = world.repos.claims(run.project.repo(world.lab.paths))
    assert claims == ({"7", "8"} if is_touched else {"7"})
    warned = Notice.objects.filter(kind=NoticeKind.RUN_WARNED, text__contains="the branch afk/8")
    assert warned.count() == int(is_touched)
    assert (press_start(world, run.project, wanted="8").run is None) is is_touched


def test_each_issue_of_a_loop_counts_against_the_limit_of_its_watch_session(world):
    project = project_of(world, is_persistent=True)
    session = watch.open(world.lab, project, Terms(is_watching=True, limit=3), "anna")
    desk = desk_of(world, project)
    desk.begin()
    Run.objects.update(kind=RunKind.AUTO, watch=session)
    for key in ("8", "9", "10"):
        ready(world, key)

    def wants() -> tuple[int | None, set[str]]:
        found = scope.of([project])[project.pk]
        return found.most, set(found.without)

    assert wants() == (2, {"7"})
    finishes(desk)
    assert asks(world, desk).state is State.TAKEN
    assert wants() == (1, {"7", "8"})
    finishes(desk)
    assert wants() == (1, {"7", "8"}), "between two issues"
    outcomes.record(world.lab, desk.run, Outcome.LIMIT_REACHED, "enough")
    session.refresh_from_db()
    assert (session.completed, session.failed) == (2, 0)
    assert wants() == (1, {"7", "8"})
    other = press_start(world, project, wanted="10").run
    Run.objects.filter(pk=other.pk).update(kind=RunKind.AUTO, watch=session)
    assert wants() == (0, {"7", "8", "10"})
    look(world)
    outcomes.record(world.lab, Run.objects.get(pk=other.pk), Outcome.DIED, "gone")
    session.refresh_from_db()
    assert (session.completed, session.failed) == (3, 1)


def test_a_request_that_is_answered_after_the_loop_has_ended_claims_nothing(world):
    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    taking.next_issue(world.lab, desk.run, "agent", 0)
    acts.ask_stop(world.lab, desk.run, by="anna")
    desk.finish(topic("build.done"))
    look(world)
    assert StartRequest.objects.get(takes_for=desk.run).text.startswith("This loop has ended")
    assert Run.objects.get().issue_key == "7"


def test_branches_of_earlier_issues_are_remembered_with_their_run(world):
    from runs.kept import owners

    desk = staying(world)
    ready(world, "8")
    finishes(desk)
    asks(world, desk)
    known = owners.remembered(desk.run.project)
    assert (known["afk/7"].run_id, known["afk/7"].outcome) == (desk.run.pk, "succeeded")
    assert known["afk/8"].run_id == desk.run.pk
    assert "afk/8" in owners.owned(desk.run.project)


@pytest.mark.row("RALPH-51", level="contract")
def test_the_door_of_programs_keeps_how_often_automatic_work_asks(world):
    project = project_of(world)
    settings_acts.replace(world.lab, project, {"idle_seconds": 240}, by="anna")
    assert Project.objects.get().poll_seconds == 240
    settings_acts.replace(world.lab, project, {"is_persistent": True}, by="anna")
    assert Project.objects.get().poll_seconds is None


def idle_turn(desk: Desk) -> int:
    return Loop.objects.get(run=desk.run).number


def written(world: World) -> None:
    """What the queue does for the tracker."""
    while world.queue.mirrors:
        pk = world.queue.mirrors.pop(0)
        mirror.carry_out(world.lab, pk)
        issue_of_loop.write_ends(world.lab, pk)


def labels(world: World, key: str) -> set[str]:
    return set(world.tracker.issue("demo", key).labels)
