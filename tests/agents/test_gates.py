"""Real programs at the gates: told in their own session what failed, they mend it, and it is accepted."""

from __future__ import annotations

import threading

import pytest

from runs.core.states import AttemptState, CompletionPolicy, NoticeKind, Outcome, ValidationState
from runs.gates import closing, runner
from runs.models import Attempt, CheckCommand, CheckTerms, Notice, Project, Review, Reviewer, Run
from runs.on_request import check_runner
from runs.validation import runner as run_level
from runs.validation.specs import Kind, Switch
from tests.agents.house import CLAUDE, CODEX, PRINT, AgentHouse
from tests.agents.script import Say, Shell, Tool, Wait
from tests.real import git

ON_SCREEN = "Codex (interactive)"
TESTS = "test -e fix.txt"
# It forgets to add a file, so that the command passes where it works and nowhere else.
FORGETS = (
    Shell(f"echo fixed > fix.txt; echo 'hello again' >> hello.txt; {TESTS}"),
    Shell(TESTS),
    Shell("git commit -qam 'feat: greet again'"),
    Say("It greets again, and the test passes."),
)
MENDS = (
    Shell("git add fix.txt && git commit -qm 'fix: add what the test needs'"),
    Shell(TESTS),
    Say("The file is committed now."),
)


def _project(house: AgentHouse, name: str) -> Project:
    """A project whose gates are one command, in the clean room and at the run level."""
    if name == ON_SCREEN:
        profile = house.codex_on_screen("--dangerously-bypass-approvals-and-sandbox")
    else:
        profile = house.profile(name)
    project = house.project(profile)
    if name == ON_SCREEN:
        house.trust_codex(project)
    project.policy = CompletionPolicy.GATES
    project.save()
    CheckTerms.objects.create(
        project=project,
        require_pytest_for_code_changes=False,
        disabled=[Switch.REVIEW.value, Switch.COVERAGE.value, Switch.E2E.value],
    )
    CheckCommand.objects.create(
        project=project, position=1, name="tests", argv=TESTS.split(), kind=Kind.TEST
    )
    return project


def _until_closed(house: AgentHouse, run: Run, failed: threading.Event) -> Run:
    """Look as the worker does, at the gates and the run level too, until its issue is closed.

    `failed` is set after a look at an attempt that has failed.
    """
    queue = house.real.queue

    def looked(run: Run) -> bool:
        if Attempt.objects.filter(run=run, state=AttemptState.FAILED).exists():
            failed.set()
        while queue.check_runs:
            check_runner.carry_out(house.real.lab, queue.check_runs.pop(0))
        while queue.attempts:
            runner.carry_out(house.real.lab, queue.attempts.pop(0))
        while queue.validations:
            run_level.carry_out(house.real.lab, queue.validations.pop(0))
        closing.update_trackers(house.real.lab)
        return bool(run.settled_at and (run.closed_at or run.outcome != Outcome.SUCCEEDED))

    return house.until(run, looked)


@pytest.mark.row("MALA-V-45", "MALA-V-86", level="real")
@pytest.mark.parametrize("name", [CLAUDE, PRINT, CODEX, ON_SCREEN])
def test_a_real_agent_is_told_in_its_own_session_what_failed_and_mends_it(house, name):
    """One says that it is done in the middle of a turn, and goes on with that until it has failed."""
    failed = threading.Event()
    early = [Shell("labctl done"), Wait(failed)] if name == CLAUDE else []
    house.model.script(*FORGETS[:-1], *early, FORGETS[-1], *MENDS)
    project = _project(house, name)
    run = _until_closed(house, house.start(project), failed)
    told = list(Notice.objects.filter(run=run).order_by("pk").values_list("kind", "text"))
    assert (run.outcome, run.attempts) == (Outcome.SUCCEEDED, 2), (told, house.told(run))
    assert [kind for kind, _ in told].count(NoticeKind.RUN_REENTERED) == 1
    first, second = Attempt.objects.filter(run=run).order_by("number")
    assert first.reason == f"{TESTS} failed with exit status 1"
    # Shown by the program's own record, of which the second attempt counts what is new.
    sources = [one.evidence[0]["source"] for one in (first, second)]
    assert sources == ["transcript", "transcript"]
    asked = [one.text for one in house.model.asked()]
    assert run.agent_session in asked[0] and run.agent_session in asked[-1]
    assert "echo fixed" in asked[-1]
    assert "labsite checked your work (attempt 1)" in asked[-1]
    assert f"- {first.reason}" in asked[-1]
    assert git(project.repo(house.real.paths), "rev-parse", "origin/afk/1") == second.commit
    assert run.validations.get().state == ValidationState.PASSED
    tracker = house.real.lab.tracker_for(project.tracker)
    assert tracker.open_issues(project.tracker_root) == []


EYES = "Look with a second pair of eyes."
WRONG = {
    "priority": 1,
    "path": "hello.txt",
    "line": 2,
    "title": "It greets twice",
    "body": "Greet somebody else.",
}


@pytest.mark.row("MALA-V-25", "MALA-V-48", "MALA-V-50", level="real")
def test_claude_code_proves_its_work_with_labctl_check_and_mends_what_another_one_finds(house):
    """The whole chain: evidence by labsite's own hand, clean room, a real reviewer, the run level."""
    house.model.script(
        Shell("echo fixed > fix.txt; echo 'hello again' >> hello.txt; git add -A"),
        Shell("git commit -qm 'feat: greet again' && labctl check"),
        Say("It greets again."),
        Shell("sed -i s/again/ada/ hello.txt; git commit -qam 'fix: greet ada' && labctl check"),
        Say("It greets Ada now."),
    )
    project = _project(house, CLAUDE)
    CheckTerms.objects.update(disabled=[Switch.COVERAGE.value, Switch.E2E.value])
    Reviewer.objects.create(
        project=project, name="eyes", profile=house.profile(PRINT), instructions=EYES
    )
    house.model.script(
        Tool("StructuredOutput", {"findings": [WRONG]}),
        Say("Done."),
        Tool("StructuredOutput", {"findings": []}),
        Say("Done."),
        word=EYES,
    )
    run = _until_closed(house, house.start(project), threading.Event())
    told = list(Notice.objects.filter(run=run).order_by("pk").values_list("kind", "text"))
    assert (run.outcome, run.attempts) == (Outcome.SUCCEEDED, 2), (told, house.told(run))
    first, second = Attempt.objects.filter(run=run).order_by("number")
    assert [one.evidence[0]["source"] for one in (first, second)] == ["check", "check"], told
    assert first.reason.startswith("eyes: P1 hello.txt:2 It greets twice"), told
    states = Review.objects.filter(attempt__run=run).order_by("pk").values_list("state", flat=True)
    assert list(states) == ["failed", "passed"], told
    assert "It greets twice" in house.model.asked("")[-1].text  # typed into its own session
    assert git(project.repo(house.real.paths), "show", "origin/afk/1:hello.txt").endswith("ada")
    assert run.validations.get().state == ValidationState.PASSED
    tracker = house.real.lab.tracker_for(project.tracker)
    assert tracker.open_issues(project.tracker_root) == []
