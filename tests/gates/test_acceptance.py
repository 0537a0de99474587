"""What changes the checks themselves waits for a person, where its project wants that."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.core.ports import SeamError
from runs.core.states import AttemptState, Gate, GateTurn, NoticeKind, Outcome, RunState
from runs.gates import acceptance
from runs.gates.acceptance import AcceptanceRefusedError
from runs.gates.hold import Hold
from runs.gates.rules import Decision
from runs.lifecycle import stop
from runs.models import Attempt, CheckTerms, Project, Run
from tests.api.program import Program, denied
from tests.fakes import World
from tests.gates.test_chain import (
    checked,
    fails,
    hold_tip,
    is_done,
    nothing_is_validated,
    project,
    run,
    told,
)
from tests.web.people import text_of
from tests.world.stories import look

__all__ = ["nothing_is_validated", "project", "run"]

pytestmark = pytest.mark.django_db(transaction=True)

FILES = [{"path": "Makefile", "part": "command", "why": "`make test` reads it.", "old_path": ""}]


def changes_checks(lab: object, hold: Hold) -> Decision:
    """The gate of evidence, which finds a changed file of the checks."""
    tip = hold_tip(lab, hold)
    hold.store(commit=tip, resolution="success", context={"check_files": FILES})
    return Decision(Gate.EVIDENCE, True)


@pytest.fixture
def asking(world: World, run: Run) -> Attempt:
    """An attempt that passed all gates and waits."""
    CheckTerms.objects.update(person_for_check_changes=True)
    is_done(world, run)
    return checked(world, run, {Gate.EVIDENCE: changes_checks})


def answered(world: World, run: Run) -> Run:
    look(world)
    run.refresh_from_db()
    return run


def test_it_waits_and_stands_under_needs_you(
    anna: Client, world: World, run: Run, asking: Attempt
) -> None:
    for _ in range(2):
        look(world)
    run.refresh_from_db()
    assert (run.state, run.gate_turn, run.outcome) == (RunState.CHECKING, GateTurn.ASKING, "")
    assert told(NoticeKind.RUN_WAITS) == [
        "it waits for a person: it changes 1 file of the checks that are to prove it"
    ]
    needs = text_of(anna.get("/needs/"))
    assert "passed its gates and waits for you" in needs
    assert f'href="/runs/{run.pk}/checks/"' in needs
    assert "Its budget rests." in needs
    page = text_of(anna.get(f"/runs/{run.pk}/checks/"))
    assert "Changes to the checks" in page
    assert "checking (attempt 1): waits for a person" in page
    assert f'formaction="/runs/{run.pk}/checks/accept"' in page


@pytest.mark.parametrize(
    ("is_on", "files"), [(False, FILES), (True, [])], ids=["not wanted", "nothing of the checks"]
)
def test_else_it_is_accepted_at_once(
    world: World, run: Run, is_on: bool, files: list[dict[str, str]]
) -> None:
    CheckTerms.objects.update(person_for_check_changes=is_on)

    def judge(lab: object, hold: Hold) -> Decision:
        made = changes_checks(lab, hold)
        hold.store(context={"check_files": files})
        return made

    is_done(world, run)
    checked(world, run, {Gate.EVIDENCE: judge})
    assert run.outcome == Outcome.SUCCEEDED


def test_accepted_it_is_a_success_and_who_said_so_is_told(
    anna: Client, world: World, run: Run, asking: Attempt
) -> None:
    sent = {"number": asking.number, "commit": asking.commit, "text": ""}
    assert anna.post(f"/runs/{run.pk}/checks/accept", sent).status_code == 303
    assert answered(world, run).outcome == Outcome.SUCCEEDED
    assert run.accepted_commit == asking.commit
    assert told(NoticeKind.GATE_PASSED)[-1] == (
        f"attempt 1 was accepted on commit {asking.commit[:7]}"
    )


def test_of_two_answers_the_first_counts(world: World, run: Run, asking: Attempt) -> None:
    seen = (asking.number, asking.commit)
    acceptance.accept(world.lab, run, *seen, by="anna")
    with pytest.raises(AcceptanceRefusedError) as refused:
        acceptance.send_back(world.lab, run, *seen, text="No.", by="bert")
    assert refused.value.code == "not_asked"
    assert answered(world, run).outcome == Outcome.SUCCEEDED


@pytest.mark.parametrize(("number", "commit"), [(2, ""), (1, "c" * 40), (1, "")])
def test_only_what_was_looked_at_is_accepted(
    world: World, run: Run, asking: Attempt, number: int, commit: str
) -> None:
    with pytest.raises(AcceptanceRefusedError):
        acceptance.accept(world.lab, run, number, commit, by="anna")
    assert answered(world, run).gate_turn == GateTurn.ASKING


def test_a_push_after_the_answer_opens_the_gates_again(
    world: World, run: Run, asking: Attempt
) -> None:
    acceptance.accept(world.lab, run, asking.number, asking.commit, by="anna")
    world.repos.refs[f"refs/heads/{run.branch}"] = "e" * 40
    assert answered(world, run).outcome == ""
    assert Attempt.objects.get(run=run, number=2).is_running


def test_sent_back_its_agent_is_told_in_its_session(
    anna: Client, world: World, run: Run, asking: Attempt
) -> None:
    sent = {"number": asking.number, "commit": asking.commit, "text": "Leave the Makefile alone."}
    assert anna.post(f"/runs/{run.pk}/checks/send-back", sent).status_code == 303
    assert answered(world, run).state == RunState.WORKING
    said = world.sessions.typed[-1][1]
    assert "- anna looked at it: Leave the Makefile alone." in said
    assert "You have 2 more attempts at the review." in said
    asking.refresh_from_db()
    assert asking.state == AttemptState.FAILED


def test_sent_back_for_the_last_time_it_fails(world: World, run: Run, asking: Attempt) -> None:
    Attempt.objects.update(spec={**asking.spec, "most_review": 1})
    seen = (asking.number, asking.commit)
    acceptance.send_back(world.lab, run, *seen, text="No.", by="anna")
    assert answered(world, run).outcome == Outcome.FAILED
    assert run.reason.startswith("gate review: anna looked at it: No.; only one attempt")


@pytest.mark.parametrize("text", ["", " \n", "x" * 2001])
def test_what_cannot_be_told_is_refused_at_its_field(
    world: World, run: Run, asking: Attempt, text: str
) -> None:
    with pytest.raises(AcceptanceRefusedError) as refused:
        acceptance.send_back(world.lab, run, asking.number, asking.commit, text=text, by="anna")
    assert set(refused.value.fields) == {"text"}
    assert answered(world, run).gate_turn == GateTurn.ASKING


def test_a_session_of_which_nothing_is_known_changes_nothing(
    world: World, run: Run, asking: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_away() -> Any:
        raise SeamError("tmux does not answer")

    monkeypatch.setattr(world.sessions, "look", is_away)
    with pytest.raises(AcceptanceRefusedError) as refused:
        acceptance.send_back(world.lab, run, asking.number, asking.commit, text="No.", by="anna")
    assert refused.value.code == "unknown"
    run.refresh_from_db()
    assert run.gate_turn == GateTurn.ASKING


def test_stop_works_while_it_waits(world: World, run: Run, asking: Attempt) -> None:
    assert stop.stop(world.lab, run, "anna")
    run.refresh_from_db()
    assert run.outcome == Outcome.STOPPED
    with pytest.raises(AcceptanceRefusedError):
        acceptance.accept(world.lab, run, asking.number, asking.commit, by="anna")


def test_programs_answer_too(world: World, run: Run, asking: Attempt, operator: User) -> None:
    at = f"/runs/{run.pk}/attempts/1"
    seen = {"commit": asking.commit}
    denied(Program.of(operator, "look").post(f"{at}/accept", seen), 403, "look_only")
    program = Program.of(operator)
    denied(program.post(f"{at}/accept", {"commit": "c" * 40}), 409, "not_asked")
    back = program.post(f"{at}/send-back", {**seen, "text": "Leave it."}).json()
    assert back["state"] == "failed"
    denied(program.post(f"{at}/accept", seen), 409, "not_asked")


def test_a_gate_that_fails_asks_nobody(world: World, run: Run, project: Project) -> None:
    CheckTerms.objects.update(person_for_check_changes=True)
    is_done(world, run)
    judges = {Gate.EVIDENCE: changes_checks, Gate.REVIEW: fails(Gate.REVIEW, "no")}
    checked(world, run, judges)
    assert (run.state, run.outcome) == (RunState.WORKING, "")
