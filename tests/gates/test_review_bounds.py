"""What bounds a review: how much of the work was given, and how long reviews of a run may take."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs.core.ports import SeamError
from runs.core.states import Outcome, RunState
from runs.followups import acts as followups
from runs.followups import red_checks
from runs.gate_pages import check_words
from runs.issues.acts import create
from runs.models import Attempt, CheckTerms, Project, PullChecks, Run, StartRequest
from runs.pulls import acts as pulls
from runs.validation.command_rules import Check, Checked
from tests.fakes import World
from tests.gates.fake_review_desk import BLOCKING, FakeReviewDesk
from tests.pulls.review_desk import AFTER
from tests.world.stories import look

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(world: World) -> FakeReviewDesk:
    return FakeReviewDesk(world)


def comments(desk: FakeReviewDesk) -> list[tuple[str, str]]:
    return [(one.author, one.body) for one in pulls.comments(desk.project, desk.number)]


@pytest.mark.parametrize("findings", [(), (BLOCKING,)], ids=["passed", "failed"])
def test_a_pull_request_says_once_how_many_files_were_not_reviewed(
    world: World, findings: tuple[dict[str, object], ...]
) -> None:
    """The diff that a command is given holds 2 MB."""
    desk = FakeReviewDesk(world, {**AFTER, "zzz.txt": "x" * 2_000_000})
    desk.reviewer("eyes", *findings)
    for _ in range(2):
        assert desk.judge().passed is not bool(findings)
        Attempt.objects.update(artifacts={})  # killed after the comment and before it was noted
    said = comments(desk)
    commit = desk.head[:12]
    assert said[0] == (
        "reviewer eyes",
        f"Commit {commit} was not reviewed in full: 1 of 5 changed files did not fit into its diff.",
    )
    assert len(said) == 1 + len(findings)


OUT_OF_TIME = "all reviews of this run together may take 3 minutes, and they have"


def test_reviews_of_a_run_have_one_time_over_all_its_attempts(desk: FakeReviewDesk) -> None:
    CheckTerms.objects.update(review_minutes=2, review_total_minutes=3, skip_without_reviewers=True)
    desk.reviewer("eyes", BLOCKING, seconds=100)
    assert desk.judge().is_retryable
    limits = [one.limit for one in desk.world.checks.ran]
    desk.attempted(2)
    found = desk.judge()
    limits += [one.limit for one in desk.world.checks.ran[1:]]
    assert limits == [timedelta(minutes=2), timedelta(seconds=80)]
    assert (found.passed, found.is_retryable) == (False, False)
    assert found.reasons[0].startswith("eyes: P1 Wrong")
    assert found.reasons[1] == OUT_OF_TIME
    desk.attempted(3)
    found = desk.judge()
    assert (found.passed, found.is_retryable, found.unreviewed) == (False, False, "all")
    assert found.reasons == (f"eyes gave no answer: {OUT_OF_TIME}",)
    assert desk.asked() == ["eyes", "eyes"]
    assert desk.told()[-1] == f"eyes gave no answer: {OUT_OF_TIME}"
    assert check_words.review(desk.reviews()["eyes"]) == "not reviewed"


def test_who_has_no_time_left_among_others_has_not_agreed(desk: FakeReviewDesk) -> None:
    CheckTerms.objects.update(review_total_minutes=3)
    desk.reviewer("slow", seconds=180)
    desk.reviewer("second")
    found = desk.judge()
    assert (found.passed, found.unreviewed) == (False, "all")
    assert found.reasons == (f"second gave no answer: {OUT_OF_TIME}",)
    assert desk.asked() == ["slow"]
    CheckTerms.objects.update(review_total_minutes=4)
    desk.attempted(2)
    desk.world.checks.answers["second"] = Checked(None, 60, is_over_time=True)
    desk.world.checks.answers["slow"] = Checked(0, 0, '{"findings": []}')
    why = OUT_OF_TIME.replace("3", "4")
    assert desk.judge().reasons == (
        f"second gave no answer: it did not end within its time: {why}",
    )


def test_the_time_of_a_review_that_nobody_heard_to_its_end_counts(desk: FakeReviewDesk) -> None:
    """Its first answer was prose; it is asked once more, and its process ends over that."""
    CheckTerms.objects.update(review_total_minutes=1)
    desk.reviewer("eyes")
    desk.world.checks.answers["eyes"] = Checked(0, 50, "Approved!")

    def dies(check: Check) -> None:
        if check.name.endswith("-2.txt"):
            raise SeamError("tmux is away")

    desk.world.checks.meanwhile = dies
    with pytest.raises(SeamError):
        desk.judge()
    assert desk.reviews()["eyes"].seconds == 50
    desk.world.checks.meanwhile = lambda check: None
    assert desk.judge().reasons[0].endswith("may take a minute, and they have")
    assert desk.world.checks.ran[-1].limit == timedelta(seconds=10)


LOW = {**BLOCKING, "priority": 2, "title": "No docstring"}


def issues(desk: FakeReviewDesk) -> list[str]:
    tracker = desk.lab.tracker_for("builtin")
    return [one.title for one in tracker.open_issues(desk.project.tracker_root)]  # type: ignore[union-attr]


def test_work_on_an_issue_of_low_findings_makes_no_further_issue(desk: FakeReviewDesk) -> None:
    """On beads it could be ready as it is: agents and reviewers would go on for ever."""
    CheckTerms.objects.update(track_low_findings=True)
    desk.reviewer("eyes", LOW)
    assert desk.judge().passed
    (title,) = issues(desk)
    Run.objects.update(issue_title=title)
    desk.attempted(2)
    assert desk.judge().passed
    assert issues(desk) == [title]
    assert desk.told()[-1].startswith("no issue is written for low-priority findings")
    Run.objects.update(issue_title=f"Do as it says: {title}")
    desk.attempted(3)
    desk.judge()
    assert len(issues(desk)) == 2


def test_comments_of_agents_reviewers_and_labsite_start_nobody(desk: FakeReviewDesk) -> None:
    """Neither a reviewer nor an agent: else each would begin the other again."""
    desk.reviewer("eyes", LOW)
    assert desk.judge().passed
    desk.attempted(2)
    Attempt.objects.update(state="passed", ended_at=desk.lab.now(), settled_at=desk.lab.now())
    now = desk.lab.now()
    ended = {"state": RunState.ENDED, "outcome": Outcome.SUCCEEDED, "ended_at": now}
    Run.objects.update(**ended, settled_at=now, pull_number=desk.number, checking_at=None)
    Project.objects.update(is_auto=True, sends_back_red_checks=True, policy="gates")
    PullChecks.objects.create(run=desk.run, head_at=now, next_at=now)
    before = comments(desk)
    assert before == [("reviewer eyes", "**P2** No docstring\n\nIt is wrong.")]
    for author in (f"Claude, run {desk.run.pk}", "reviewer eyes", "labsite"):
        desk.say("Please review this again, and mend what the reviewer says.", by=author)
        desk.world.clock.forward(minutes=11)
        look(desk.world)
        red_checks.request_looks(desk.lab)
        for run_id in desk.world.queue.mirrors:
            red_checks.look(desk.lab, run_id)
    assert len(comments(desk)) == len(before) + 3
    assert desk.asked() == ["eyes"]
    assert (Run.objects.count(), Attempt.objects.count()) == (1, 2)
    assert not StartRequest.objects.exists()
    key = create(desk.lab, desk.project, title="Greet", body="", labels=[], by="anna")
    Run.objects.update(issue_key=key)
    run = Run.objects.select_related("project").get()
    desk.git.refs["refs/heads/afk/1"] = desk.head
    asked = followups.request_changes(desk.lab, run, "Mend it.", by="anna")
    assert "reviewer eyes:\n> **P2** No docstring" in asked.follow_up
    assert "Claude, run" not in asked.follow_up


def test_a_review_of_all_files_is_not_called_partial(desk: FakeReviewDesk) -> None:
    desk.reviewer("eyes")
    assert desk.judge().passed
    assert comments(desk) == []
