"""A reviewer whose account is held or whose limit is reached: not started, waited for, said."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from decimal import Decimal

import pytest

from runs.accounts import holds
from runs.core.states import AttemptState, Gate, NoticeKind
from runs.gate_pages import check_words
from runs.gates import review, runner
from runs.gates.hold import PostponedError
from runs.models import AgentProfile, Attempt, CheckTerms, Job, Notice, Reviewer
from tests import make
from tests.gates.review_desk import OK, Desk
from tests.gates.test_review import TELLS
from tests.real import RealWorld

pytestmark = pytest.mark.django_db(transaction=True)

REFUSED = {
    "is_error": True,
    "subtype": "success",
    "api_error_status": 429,
    "result": "You've hit your limit",
}
COUNTS = "import sys; open(sys.argv[2], 'a').write('x')\n" + TELLS


@pytest.fixture
def desk(real: RealWorld) -> Desk:
    return Desk(real)


def an_agent(desk: Desk, said: dict[str, object], **fields: object) -> AgentProfile:
    """An agent that writes down that it was asked, and tells this as its result."""
    argv = [sys.executable, "-c", COUNTS, json.dumps(said), str(desk.real.folder / "asked")]
    output = "claude_stream_json"
    profile = make.an_agent(
        "Claude", argv=[*argv, "{prompt}"], mode="one_shot", output=output, **fields
    )
    desk.reviewer("eyes", command=[], profile=profile)
    return profile


def asked(desk: Desk) -> int:
    at = desk.real.folder / "asked"
    return len(at.read_text()) if at.exists() else 0


@pytest.mark.row("MALA-V-49", level="real")
def test_a_usage_limit_met_in_a_review_holds_the_account_and_the_gate_waits_for_it(
    desk: Desk,
) -> None:
    profile = an_agent(desk, REFUSED)
    desk.reviewer("twin", command=[], profile=profile)
    with pytest.raises(
        PostponedError, match="not reviewed yet: Claude: usage limit reached"
    ) as found:
        desk.judge()
    assert asked(desk) == 1, "the second reviewer of the same account is not started"
    profile.refresh_from_db()
    assert (profile.hold, profile.held_until) == ("limit", found.value.at)
    assert found.value.is_new
    assert Notice.objects.filter(kind=NoticeKind.AGENT_HELD).count() == 1
    for row in desk.reviews().values():
        assert check_words.review(row) == "waiting"
        assert "It is tried again at" in row.reason
    said = desk.told()
    with pytest.raises(PostponedError) as again:
        desk.judge()
    assert (again.value.is_new, desk.told()) == (False, said)
    answers = json.dumps({"structured_output": {"findings": []}})
    argv = [answers if one == json.dumps(REFUSED) else one for one in profile.argv]
    AgentProfile.objects.update(argv=argv)
    profile.refresh_from_db()
    assert holds.try_again(desk.lab, profile, by="anna")
    assert desk.judge().passed
    assert {one.state for one in desk.reviews().values()} == {"passed"}
    assert not any("has ended" in one for one in desk.told())


def test_a_model_that_a_reviewer_alone_is_to_use_holds_no_account(desk: Desk) -> None:
    said = {**REFUSED, "api_error_status": 404, "result": "model: none-such"}
    profile = an_agent(desk, said)
    Reviewer.objects.update(model="none-such")
    assert desk.judge().reasons[0].startswith("no reviewer available (eyes: no access to the model")
    profile.refresh_from_db()
    assert profile.hold == ""


@pytest.mark.row("MALA-V-49", level="real")
@pytest.mark.parametrize("how", ["skips", "too long", "the attempt ends"])
def test_who_is_not_waited_for_was_not_available(desk: Desk, how: str) -> None:
    now = desk.lab.now()
    hours = 48 if how == "too long" else 1
    until = now + timedelta(hours=hours)
    an_agent(desk, {}, hold="limit", held_at=now, held_until=until)
    CheckTerms.objects.update(skip_without_reviewers=how == "skips")
    if how == "the attempt ends":
        with pytest.raises(PostponedError):
            desk.judge()
        review.end_reviews(desk.lab, desk.attempt)
    else:
        found = desk.judge()
        assert (found.is_skipped, found.unreviewed) == (how == "skips", "all")
    (row,) = desk.reviews().values()
    assert (row.state, check_words.review(row)) == ("unavailable", "not reviewed")
    assert row.reason.startswith("Claude: usage limit reached. It is tried again at")
    assert asked(desk) == 0


@pytest.mark.row("MALA-V-49", level="real")
def test_the_attempt_waits_with_a_sentence_and_costs_nothing(desk: Desk) -> None:
    until = desk.lab.now() + timedelta(hours=5)

    def waits(lab: object, hold: object) -> None:
        raise PostponedError("not reviewed yet: soon", until, is_new=True)

    decisions = [
        {"gate": one, "passed": True, "reasons": [], "is_retryable": True, "is_skipped": False}
        for one in (Gate.EVIDENCE, Gate.CLEAN_ROOM)
    ]
    Attempt.objects.update(decisions=decisions)
    desk.hold().release()
    runner.carry_out(desk.lab, desk.attempt.pk, judges={Gate.REVIEW: waits})
    job = Job.objects.get()
    state = Attempt.objects.get().state
    assert (state, job.owner, job.troubles) == (AttemptState.RUNNING, "", 0)
    assert job.not_before is not None
    assert timedelta(minutes=9) < job.not_before - desk.lab.now() <= timedelta(minutes=10)
    assert desk.told() == ["attempt 1 waits: not reviewed yet: soon"]


@pytest.mark.parametrize("whose", ["the run", "the day"])
def test_a_limit_of_money_that_is_reached_keeps_a_reviewer_from_being_asked(
    desk: Desk, whose: str
) -> None:
    said = {"structured_output": {"findings": []}}
    profile = an_agent(desk, said)
    assert desk.judge().passed  # used $0.25
    desk.attempt = desk_again(desk)
    if whose == "the run":
        desk.project.run_cost_limit = Decimal("0.25")
    else:
        desk.project.day_cost_limit = Decimal("0.25")
    desk.project.save()
    if whose == "the run":
        found = desk.judge()
        wanted = "the limit of money for one run is reached: $0.25 of $0.25"
        assert found.reasons == (f"no reviewer available (eyes: {wanted})",)
    else:
        with pytest.raises(
            PostponedError, match="money for this project today is reached"
        ) as waits:
            desk.judge()
        assert (waits.value.at.hour, waits.value.at.minute) == (0, 0)
        assert waits.value.at > desk.lab.now()
    assert asked(desk) == 1
    desk.reviewer("command", OK)
    Reviewer.objects.filter(profile=profile).update(is_on=False)
    assert desk.judge().passed, "a command tells no cost"


def desk_again(desk: Desk) -> Attempt:
    """The next attempt of the same run."""
    Attempt.objects.update(state=AttemptState.PASSED, ended_at=desk.lab.now())
    return desk.attempted(desk.attempt.commit, desk.attempt.base, 2)
