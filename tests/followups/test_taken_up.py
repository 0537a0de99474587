"""An ended run is taken up as a loop of fresh turns in its worktree (World: all faked)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from runs import tick
from runs.core.states import AgentMode, CompletionPolicy, Outcome
from runs.followups import acts, loop_rules, rules
from runs.followups.acts import FollowUpRefused
from runs.loops.acts import ask_stop
from runs.models import (
    AgentProfile,
    Loop,
    LoopGuidance,
    LoopTerms,
    Notice,
    Project,
    Run,
    Settings,
    StartRequest,
)
from tests import make
from tests.api.program import Program
from tests.fakes import World
from tests.followups.conftest import dead
from tests.loops.desk import Desk, topic
from tests.web.people import text_of
from tests.world.stories import look, work

pytestmark = pytest.mark.django_db(transaction=True)

HTMX = {"HX-Request": "true"}
TEXT = "Use the other parser."
CHOICE = 'name="as_loop"'


@pytest.fixture
def run(world: World, project: Project) -> Run:
    """A run that ended without a pull request and did not tell its session; its agent is one-shot."""
    found = dead(world, project)
    Run.objects.update(agent_session="")
    found.refresh_from_db()
    return found


@pytest.fixture
def answered(world: World) -> None:
    """A worker looks whenever somebody waits for its answer."""

    def look_and_work(seconds: float) -> None:
        tick.tick(world.lab, project="demo")
        work(world)

    object.__setattr__(world.lab, "pause", look_and_work)


def taken_up(world: World, run: Run, text: str = TEXT, by: str = "anna") -> Run:
    acts.resume(world.lab, Run.objects.get(pk=run.pk), text, by=by, as_loop=True)
    look(world)
    work(world)
    look(world)
    return Run.objects.get(continues=run)


def interactive(project: Project) -> None:
    AgentProfile.objects.filter(pk=project.agent_id).update(mode=AgentMode.INTERACTIVE, output="")


def press(client: Client, run: Run, as_loop: str = "yes", text: str = TEXT, **more: Any) -> Any:
    return client.post(f"/runs/{run.pk}/resume", {"text": text, "as_loop": as_loop}, **more)


@pytest.mark.row("RALPH-01", level="contract")
def test_it_is_a_loop_on_the_same_branch_with_the_issue_and_what_the_person_wrote(
    world: World, run: Run
) -> None:
    repo = run.project.repo(world.lab.paths)
    base = world.repos.commit({}, subject="chore: begin")
    tip = world.repos.commit({"a.py": "1"}, base, subject="feat: half of it")
    Run.objects.update(fork_point=base)
    world.repos.heads[repo][run.branch] = tip
    made = taken_up(world, run)
    assert (made.is_loop, made.branch, made.worktree) == (True, run.branch, run.worktree)
    assert (made.agent, made.own_budget_seconds) == ("Claude", 14_400 + 3600)
    order = world.sessions.orders[made.session]
    assert order.argv == [str(world.lab.paths.bin / "labctl"), "turns"]
    desk = Desk(world, made)
    first = desk.begin()
    assert first.content["argv"][0] == "claude"
    prompt = first.content["prompt"]
    assert "> # Implement: Issue 7 (#7)" in prompt
    assert f"## GUIDANCE\n\nA person who watches this loop says:\n\n> {TEXT}\n" in prompt
    told = f"An earlier run left these commits on `{run.branch}`, the newest first. Build on them:"
    assert f"{told}\n- {tip[:7]} feat: half of it\n" in prompt
    LoopGuidance.objects.update(acknowledged_at=world.clock())
    second = desk.finish(topic("build.done")).content["prompt"]
    assert told not in second
    assert TEXT not in second
    assert desk.finish(topic("LOOP_COMPLETE")).content["code"] == 0
    made.refresh_from_db()
    assert made.outcome == Outcome.SUCCEEDED


def test_without_words_of_a_person_there_is_no_guidance(world: World, run: Run) -> None:
    made = taken_up(world, run, rules.GO_ON)
    assert made.is_loop
    assert not LoopGuidance.objects.exists()


def test_stored_terms_of_the_project_hold_though_they_are_off_but_for_taking_other_issues(
    world: World, run: Run, project: Project
) -> None:
    turner = make.an_agent("Turner", argv=["turner", "{prompt}"], mode="one_shot")
    LoopTerms.objects.create(project=project, profile=turner, max_turns=3, is_persistent=True)
    Settings.objects.update(agent=project.agent, model="a", effort="high")
    made = taken_up(world, run)
    assert (made.agent, made.profile, made.model, made.effort) == ("Turner", turner, "", "")
    stored = Loop.objects.get().terms["rules"]
    assert (stored["limits"]["turns"], stored["is_persistent"]) == (3, False)
    assert not LoopTerms.objects.get().is_on


def test_a_one_shot_agent_of_the_run_is_taken_where_the_loop_settings_have_none(
    world: World, run: Run, project: Project
) -> None:
    typed = make.an_agent("Typed", argv=["typed"], mode="interactive")
    LoopTerms.objects.create(project=project, profile=typed)
    assert taken_up(world, run).agent == "Claude"


@pytest.mark.postgres
def test_pressed_twice_or_by_two_people_it_makes_one_run(world: World, run: Run) -> None:
    first = acts.resume(world.lab, run, TEXT, by="anna", as_loop=True)
    assert acts.resume(world.lab, run, TEXT, by="anna", as_loop=True).pk == first.pk
    for by in ("anna", "bob"):
        with pytest.raises(FollowUpRefused) as refused:
            acts.resume(world.lab, run, TEXT, by=by)
        assert refused.value.code == "asked_already"
    look(world)
    work(world)
    made = Run.objects.get(continues=run)
    assert acts.resume(world.lab, run, TEXT, by="anna", as_loop=True).run_id == made.pk
    with pytest.raises(FollowUpRefused, match=f"Run {made.pk} of issue 7 came after"):
        acts.resume(world.lab, run, TEXT, by="anna")
    assert (Run.objects.count(), Loop.objects.count()) == (2, 1)


def gates(project: Project) -> None:
    Project.objects.update(policy=CompletionPolicy.GATES)


@pytest.mark.parametrize(
    ("change", "why"), [(interactive, loop_rules.NO_AGENT), (gates, loop_rules.IS_GATED)]
)
def test_what_changes_between_press_and_start_starts_nothing_and_is_told(
    world: World, run: Run, project: Project, change: Any, why: str
) -> None:
    asked = acts.resume(world.lab, run, TEXT, by="anna", as_loop=True)
    change(project)
    look(world)
    asked.refresh_from_db()
    assert (asked.answer, asked.text, asked.run) == ("cannot_go_on", why, None)
    assert Run.objects.count() == 1


def test_a_held_agent_of_the_turns_starts_nothing(world: World, run: Run, project: Project) -> None:
    now = world.clock()
    hold = {"hold": "limit", "held_at": now, "held_until": now + timedelta(hours=1)}
    turner = make.an_agent("Turner", argv=["turner"], mode="one_shot", **hold)
    LoopTerms.objects.create(project=project, profile=turner)
    asked = acts.resume(world.lab, run, TEXT, by="anna", as_loop=True)
    look(world)
    asked.refresh_from_db()
    assert (asked.answer, Run.objects.count()) == ("agent_held", 1)


def test_one_that_was_stopped_goes_on_as_the_loop_that_it_was(
    world: World, run: Run, anna: Client
) -> None:
    made = taken_up(world, run)
    desk = Desk(world, made)
    desk.begin()
    ask_stop(world.lab, made, by="anna")
    assert desk.finish(topic("build.done")).do == "end"
    look(world)
    shown = text_of(anna.get(f"/runs/{made.pk}/"))
    assert "It goes on as a loop. Claude begins each turn anew" in shown
    assert CHOICE not in shown
    asked = acts.resume(world.lab, Run.objects.get(pk=made.pk), "Go on.", by="anna")
    assert acts.resume(world.lab, made, "Go on.", by="anna").pk == asked.pk
    for _ in range(2):
        look(world)
        work(world)
    again = Run.objects.get(continues=made)
    assert again.is_loop
    assert Loop.objects.get(run=again).counters["turns"] == 1


def test_a_session_that_was_tried_in_vain_is_none(world: World, run: Run) -> None:
    Run.objects.update(agent_session="a-session")
    run.refresh_from_db()
    with pytest.raises(FollowUpRefused) as refused:
        acts.resume(world.lab, run, TEXT, by="anna", as_loop=True)
    assert refused.value.fields == {"as_loop": loop_rules.CAN_RESUME}
    assert not StartRequest.objects.filter(continues=run).exists()
    failed = make.a_run(run.project, "7", outcome="failed", continues=run, resume_failures=3)
    Run.objects.filter(pk=failed.pk).update(started_at=None)
    acts.resume(world.lab, run, TEXT, by="anna", as_loop=True)


def test_one_that_failed_to_be_started_in_its_own_session_is_taken_up(
    world: World, run: Run
) -> None:
    Run.objects.update(agent_session="a-session", outcome=Outcome.FAILED, resume_failures=3)
    assert taken_up(world, run).is_loop


def test_where_the_agent_of_its_turns_is_deleted_the_loop_settings_name_another(
    world: World, run: Run, project: Project
) -> None:
    turner = make.an_agent("Turner", argv=["turner"], mode="one_shot")
    LoopTerms.objects.create(project=project, profile=turner)
    desk = Desk(world, taken_up(world, run))
    turner.delete()
    other = make.an_agent("Other", argv=["other"], mode="one_shot")
    LoopTerms.objects.update(profile=other)
    assert desk.begin().content["argv"] == ["other"]
    assert desk.turn.agent == "Other"


# The page and the API


def test_the_page_offers_it_and_says_what_it_does(anna: Client, run: Run) -> None:
    shown = text_of(anna.get(f"/runs/{run.pk}/"))
    assert CHOICE in shown
    how = "Claude begins each turn anew, with the issue and this text, in the same worktree, until "
    assert f"{how}the work is done or a limit is reached." in shown
    assert CHOICE in text_of(anna.get(f"/runs/{run.pk}/resume"))


def test_without_an_agent_for_it_the_choice_is_disabled_and_says_what_to_set(
    anna: Client, run: Run, project: Project
) -> None:
    interactive(project)
    shown = text_of(anna.get(f"/runs/{run.pk}/"))
    assert CHOICE in shown
    assert " disabled>" in shown.partition(CHOICE)[2][:300]
    assert loop_rules.NO_AGENT in shown
    assert f'href="/projects/{project.pk}/loops/">Open Loops' in shown
    answer = press(anna, run)
    assert answer.status_code == 422
    assert not StartRequest.objects.filter(continues=run).exists()


def test_where_its_session_can_go_on_it_is_not_offered(anna: Client, run: Run) -> None:
    Run.objects.update(agent_session="a-session")
    assert CHOICE not in text_of(anna.get(f"/runs/{run.pk}/"))
    answer = press(anna, run, headers=HTMX)
    assert answer.status_code == 422
    assert loop_rules.CAN_RESUME in text_of(answer)


def test_where_all_runs_are_loops_nothing_has_to_be_chosen(
    world: World, anna: Client, run: Run, project: Project
) -> None:
    LoopTerms.objects.create(project=project, is_on=True)
    shown = text_of(anna.get(f"/runs/{run.pk}/"))
    assert CHOICE not in shown
    assert "It goes on as a loop. Claude begins each turn anew" in shown
    assert taken_up(world, run).is_loop


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_pressed_it_leads_to_the_loop(
    anna: Client, run: Run, answered: None, headers: dict[str, str]
) -> None:
    answer = press(anna, run, headers=headers)
    made = Run.objects.get(continues=run)
    assert made.is_loop
    assert f"/runs/{made.pk}/" in (answer.get("Location"), answer.get("HX-Redirect"))
    shown = text_of(anna.get(f"/runs/{made.pk}/"))
    assert "Stop after this turn" in shown
    who = Notice.objects.filter(run=made, kind="run.starting").values_list("by", flat=True)
    assert list(who) == ["anna"]


@pytest.mark.parametrize("headers", [{}, HTMX])
@pytest.mark.parametrize(
    ("as_loop", "text", "words"),
    [("maybe", TEXT, loop_rules.NO_CHOICE), ("yes", "", rules.NO_TEXT)],
)
def test_what_is_wrong_stands_at_its_field_and_nothing_is_stored(
    anna: Client, run: Run, headers: dict[str, str], as_loop: str, text: str, words: str
) -> None:
    answer = press(anna, run, as_loop, text, headers=headers)
    shown = text_of(answer)
    assert answer.status_code == 422
    assert 'aria-invalid="true"' in shown
    assert words in shown
    assert " checked" in shown.partition(CHOICE)[2][:300]
    assert not StartRequest.objects.filter(continues=run).exists()


def test_whoever_may_only_look_may_not_press(vera: Client, run: Run) -> None:
    assert press(vera, run).status_code == 403


def test_a_program_takes_it_up(operator: Any, run: Run, answered: None) -> None:
    program = Program.of(operator)
    given = {"text": TEXT, "as_loop": True}
    wrong = program.send("POST", f"/runs/{run.pk}/resume", {"text": TEXT, "as_loop": "maybe"})
    assert (wrong.status_code, list(wrong.json()["fields"])) == (422, ["as_loop"])
    Run.objects.update(agent_session="a-session")
    wrong = program.send("POST", f"/runs/{run.pk}/resume", given)
    assert (wrong.status_code, wrong.json()["fields"]) == (422, {"as_loop": loop_rules.CAN_RESUME})
    assert not StartRequest.objects.filter(continues=run).exists()
    Run.objects.update(agent_session="")
    answer = program.send("POST", f"/runs/{run.pk}/resume", given)
    made = answer.json()["run"]
    assert (answer.status_code, made["continues"]) == (201, run.pk)
    assert program.send("GET", f"/runs/{made['id']}/loop").json()["end"] == ""
