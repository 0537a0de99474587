"""A pull request shows its checks wherever it is shown, and *Merge* asks where they did not pass."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from runs.bulk import acts as bulk
from runs.models import Attempt, Project, Run, Validation
from runs.overview import waiting
from runs.pulls import proofs
from runs.validation import acts as validation_acts
from runs.validation.acts import CheckRefused
from tests import make
from tests.api.program import Program, denied
from tests.fakes import START, World
from tests.pulls.review_desk import Review
from tests.web.people import hx, text_of

pytestmark = pytest.mark.django_db
OTHER = {"name": "issue 4", "branch": "afk/4", "tip": "4" * 40}


@pytest.fixture
def review(world: World) -> Review:
    made = Review(world)
    Project.objects.filter(pk=made.project.pk).update(checks="pytest -q")
    made.project.refresh_from_db()
    return made


@pytest.fixture
def run(review: Review) -> Run:
    return make.a_run(review.project, "1", outcome="succeeded", pull_number=review.number)


def validate(run: Run, state: str, tip: str, *others: dict[str, str], **fields: Any) -> Validation:
    """A validation of a run that ended like this, or still runs."""
    piece = {"name": f"issue {run.issue_key}", "branch": run.branch, "tip": tip}
    over = None if state == "running" else START
    number = Validation.objects.count() + 1
    return Validation.objects.create(
        project=run.project,
        run=run,
        number=number,
        count=1,
        host="local",
        state=state,
        minutes=30,
        most_fixers=0,
        merged=[*others, piece],
        mark="m",
        began_at=START,
        ended_at=over,
        settled_at=over,
        **fields,
    )


def card(client: Client, review: Review) -> str:
    html = text_of(client.get(review.at))
    return html.partition('id="pull-merge"')[2].partition("</section>")[0]


def address(html: str) -> str:
    found = re.search(r'formaction="([^"]+/merge\?[^"]+)"', html)
    assert found
    return found[1].replace("&amp;", "&")


def test_a_failed_one_asks_first_and_is_merged_when_asked_for(
    anna: Client, review: Review, run: Run
) -> None:
    validate(run, "failed", review.head, OTHER, reason="pytest failed with exit status 1")
    html = card(anna, review)
    assert '<span class="pill bad">checks failed</span>' in html
    assert "together with issue 4 (validation 1 of run" in html
    assert "Merge although its checks failed" in html
    assert "checks=failed" in address(html)
    blind = address(html).replace("checks=failed", "checks=")
    answer = hx(anna, blind)
    assert answer.status_code == 409
    assert "The checks failed on" in text_of(answer)
    assert review.pull.state == "open"
    assert anna.post(address(html)).status_code == 303
    assert review.pull.state == "merged"


def test_what_got_worse_since_it_was_seen_is_not_merged(
    anna: Client, review: Review, run: Run
) -> None:
    seen = address(card(anna, review))
    assert "checks=missing" in seen
    validate(run, "failed", review.head, reason="pytest failed with exit status 1")
    assert hx(anna, seen).status_code == 409
    assert review.pull.state == "open"


def test_a_project_may_refuse_what_did_not_pass(
    anna: Client, review: Review, run: Run, operator: User
) -> None:
    Project.objects.update(merges_only_passed=True)
    html = card(anna, review)
    assert "checks=" not in html
    assert "This project merges only what its checks passed." in html
    program, at = Program.of(operator), f"/projects/{review.project.pk}/pulls/1/merge"
    denied(program.post(at, {"checks": "missing"}), 409, "checks_missing")
    validate(run, "passed", review.head)
    assert "Press again: merge it" in card(anna, review)
    assert program.post(at, {}).status_code == 200


def test_the_api_says_how_the_checks_are_and_takes_consent(
    review: Review, run: Run, operator: User
) -> None:
    validate(run, "failed", review.head, reason="pytest failed with exit status 1")
    program, at = Program.of(operator), f"/projects/{review.project.pk}/pulls/1/merge"
    told = program.get(at).json()["checks"]
    assert told["state"] == "failed"
    assert "exit status 1" in told["text"]
    denied(program.post(at, {}), 409, "checks_failed")
    assert program.post(at, {"checks": "failed"}).status_code == 200


def test_the_list_and_the_overview_show_it(anna: Client, review: Review, run: Run) -> None:
    validate(run, "failed", review.head, reason="pytest failed with exit status 1")
    html = text_of(anna.get(f"/projects/{review.project.pk}/pulls/"))
    assert '<span class="pill bad">checks failed</span>' in html
    needs = text_of(anna.get("/"))
    assert "has failed checks" in needs
    assert "The checks failed on" in needs
    validate(run, "passed", review.head)
    (pull,) = waiting.of_trackers([review.project], with_pulls=True)[1]
    assert pull.red == ""
    assert '<span class="pill good">checks passed</span>' in text_of(
        anna.get(f"/projects/{review.project.pk}/pulls/")
    )


def test_a_push_takes_the_proof_away(review: Review, run: Run) -> None:
    validate(run, "passed", review.head)
    more = review.more()
    assert proofs.load_proof(review.project, "afk/1", review.head).state == "passed"
    assert proofs.load_proof(review.project, "afk/1", more).state == "missing"


def test_gates_prove_it_too(review: Review, run: Run) -> None:
    Attempt.objects.create(
        run=run,
        project=run.project,
        host="local",
        number=1,
        state="failed",
        claim="done",
        commit=review.head,
        reason="ruff failed",
        mark="m",
        began_at=START,
        ended_at=START,
    )
    proof = proofs.load_proof(review.project, "afk/1", review.head)
    assert (proof.state, proof.url) == ("failed", f"/runs/{run.pk}/checks/")
    assert "gates, attempt 1" in proof.text
    assert "ruff failed" in proof.text


def test_many_at_once_are_told_and_asked_for_each(world: World, review: Review, run: Run) -> None:
    (item,) = bulk.of_pulls(review.project, ["1"]).values()
    act = bulk.OF_PULLS["merge"]
    (forecast,) = bulk.foresee(world.lab, act, [item])
    assert forecast.can
    assert "were not run on commit" in forecast.text
    (result,) = bulk.carry_out(world.lab, act, ["1"], {"1": item}, {"1": review.head}, "anna")
    assert result.is_done is False
    (result,) = bulk.carry_out(world.lab, act, ["1"], {"1": item}, {"1": forecast.seen}, "anna")
    assert result.is_done is True


def test_checks_are_begun_from_the_pull_request_once(
    anna: Client, review: Review, run: Run
) -> None:
    html = card(anna, review)
    assert "Run the checks" in html
    for _ in range(2):
        assert hx(anna, f"{review.at}check").status_code == 200
    (row,) = Validation.objects.all()
    assert (row.run, row.state, row.commands) == (run, "running", [["pytest", "-q"]])


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"checks": ""}, "no_commands"), ({"state": "cloning"}, "not_ready"), ({}, "no_run")],
)
def test_checks_that_cannot_be_begun_say_why(
    world: World, review: Review, fields: dict[str, str], code: str
) -> None:
    if code != "no_run":
        make.a_run(review.project, "1", outcome="succeeded")
    Project.objects.update(**fields)
    with pytest.raises(CheckRefused) as error:
        validation_acts.check_delivery(world.lab, review.project, "afk/1", "anna")
    assert error.value.code == code
    assert not Validation.objects.exists()


def test_who_may_only_look_begins_and_merges_nothing(
    review: Review, run: Run, viewer: User
) -> None:
    client = Client()
    client.force_login(viewer)
    assert client.post(f"{review.at}check").status_code == 403
    assert "checks=" not in card(client, review)
    assert "not checked" in card(client, review)
