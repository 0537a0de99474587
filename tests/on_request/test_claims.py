"""What an agent says of its issue where gates prove it: kept once, with its reason, and asked about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from runs.agents import orders
from runs.core import tokens
from runs.core.states import Claim, CompletionPolicy, RunState
from runs.models import CheckCommand, CheckTerms, Notice, Project, Run, Settings
from tests import make
from tests.fakes import START, World

TOKEN = tokens.new_token()


@pytest.fixture
def run(world: World, transactional_db: None) -> Run:
    world.tracker.add_root("demo")
    world.tracker.add_issue("demo", "Issue 1", body="text", labels=[])
    project = make.a_project(policy=CompletionPolicy.GATES)
    for position, (name, kind) in enumerate([("pytest", "test"), ("ruff", "lint"), ("e2e", "e2e")]):
        CheckCommand.objects.create(
            project=project, position=position, name=name, argv=[name], kind=kind
        )
    return make.a_run(project, agent="Claude", token_hash=tokens.hash_token(TOKEN))


def said(address: str, **content: str) -> Any:
    client = Client(headers={"Authorization": f"Bearer {TOKEN}"})
    return client.post(address, json.dumps(content), content_type="application/json")


@pytest.mark.row("MALA-V-12", "MALA-V-31", level="contract")
@pytest.mark.parametrize(
    ("word", "claim"), [("no-change", Claim.NO_CHANGE), ("obsolete", Claim.OBSOLETE)]
)
def test_a_word_that_needs_no_commit_is_kept_with_its_reason_and_looked_at(
    run: Run, world: World, word: str, claim: Claim
) -> None:
    answer = said(f"/agent/claims/{word}", message="  Fixed by 4ad.\n")
    assert answer.status_code == 200
    assert answer.json()["expects"] == ["no files in the worktree that are not committed"]
    run.refresh_from_db()
    assert (run.claim, run.claim_reason, run.look_asked_at) == (claim, "Fixed by 4ad.", START)
    assert run.state == RunState.WORKING, "the judge moves it, not the command"
    assert world.bell.looks == ["demo"]
    assert said(f"/agent/claims/{word}", message="Fixed by 4ad.").status_code == 200
    notice = Notice.objects.get(text__startswith="the agent says")
    text = f"the agent says: {claim.value.replace('_', ' ')}, Fixed by 4ad."
    assert (notice.text, notice.by) == (text, f"Claude, run {run.pk}")


@pytest.mark.row("C-07", "MALA-V-25", level="contract")
def test_done_asks_for_a_look_and_says_what_is_expected_but_no_pull_request(
    run: Run, world: World
) -> None:
    said("/agent/claims/no-change", message="I thought so")
    answer = said("/agent/done").json()
    assert answer == {
        "text": "You say that you are done: labsite checks your work now.",
        "expects": [
            "a commit on afk/7 that names #7",
            "that these ran and passed on it (labctl check): ruff, pytest",
            "no files in the worktree that are not committed",
        ],
        "is_checking": False,
    }
    run.refresh_from_db()
    assert (run.claim, run.claim_reason, run.look_asked_at) == (Claim.DONE, "", START)


@pytest.mark.row("MALA-V-12", level="contract")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("", "Say in a sentence why"),
        (" \n ", "Say in a sentence why"),
        ("x" * 2001, "at most 2000"),
    ],
)
def test_a_word_without_a_fit_reason_is_refused(run: Run, message: str, text: str) -> None:
    answer = said("/agent/claims/obsolete", message=message)
    assert (answer.status_code, answer.json()["code"]) == (422, "message")
    assert text in answer.json()["text"]
    run.refresh_from_db()
    assert (run.claim, run.look_asked_at) == ("", None)


@pytest.mark.row("X-10", level="contract")
def test_no_secret_is_kept_in_a_reason(run: Run, world: World) -> None:
    secret = tokens.new_run_token()
    said("/agent/claims/obsolete", message=f"The token is {secret}.")
    run.refresh_from_db()
    assert run.claim_reason == "The token is [hidden]."


@pytest.mark.row("C-08", level="contract")
@pytest.mark.parametrize("address", ["/agent/done", "/agent/claims/no-change"])
def test_while_its_work_is_checked_a_word_changes_nothing(run: Run, address: str) -> None:
    Run.objects.update(state=RunState.CHECKING, checking_at=START, claim=Claim.DONE, attempts=1)
    answer = said(address, message="late")
    text = "labsite checks your work (attempt 2). You can stop here."
    assert answer.json() == {"text": text, "expects": [], "is_checking": True}
    run.refresh_from_db()
    assert (run.claim, run.look_asked_at) == (Claim.DONE, None)


def test_where_nobody_checks_such_a_word_it_is_refused(run: Run) -> None:
    Project.objects.update(policy=CompletionPolicy.PULL_REQUEST)
    answer = said("/agent/claims/no-change", message="why")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_gates")
    Project.objects.update(policy=CompletionPolicy.GATES)
    Run.objects.update(amends=3)
    assert "adds to a pull request" in said("/agent/claims/obsolete", message="why").json()["text"]
    Run.objects.update(amends=None, state=RunState.HELD, held_at=START)
    assert said("/agent/claims/no-change", message="why").json()["code"] == "not_working"
    assert said("/agent/claims/done", message="why").status_code == 404
    run.refresh_from_db()
    assert (run.claim, run.look_asked_at) == ("", None)


def test_what_is_turned_off_is_not_expected(run: Run) -> None:
    CheckTerms.objects.create(
        project=run.project, require_clean_git=False, disabled=["post-validate"]
    )
    assert said("/agent/done").json()["expects"] == [
        "a commit on afk/7 that names #7",
        "that these ran and passed on it (labctl check): ruff",
    ]


@pytest.mark.row("C-07", "C-09", "C-10", level="contract")
def test_the_task_of_a_project_with_gates_asks_for_proof_and_for_no_pull_request(
    run: Run, world: World
) -> None:
    profile = make.an_agent()
    order = orders.make(world.lab, run, profile, Settings.current())
    task = order.files["prompt.md"]
    assert "`labctl check`" in task
    assert "names `#7`" in task
    assert "git push origin afk/7" in task
    assert "`labctl done`" in task
    assert "labctl issue no-change" in task
    assert "labsite closes it" in task
    assert "labctl pr create" not in task
    assert [f"\n{n}. " in task for n in range(1, 9)] == [True] * 7 + [False]
    Run.objects.filter(pk=run.pk).update(amends=4)
    run.refresh_from_db()
    task = orders.make(world.lab, run, profile, Settings.current()).files["prompt.md"]
    assert "labctl check" not in task, "its tracker tells how it ends"


@pytest.mark.row("C-07", level="contract")
def test_one_that_goes_on_with_earlier_work_is_told_so_too(run: Run, world: World) -> None:
    before = make.a_run(run.project, "8", slot=2, outcome="died")
    Run.objects.filter(pk=run.pk).update(continues=before, follow_up="Mend the typo.")
    run.refresh_from_db()
    task = orders.make(world.lab, run, make.an_agent(), Settings.current()).files["prompt.md"]
    assert "Mend the typo." in task
    assert "`labctl check`" in task
    assert "Name `#7`" in task
    assert "labctl pr create" not in task
