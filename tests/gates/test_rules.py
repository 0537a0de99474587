"""The gate chain, a row for each rule."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from runs.core.states import Claim, Gate
from runs.gates import rules
from runs.gates.rules import AttemptFacts, Decision, Next, Resolution, Step, Tip, Unreviewed

OK = {gate: Decision(gate, True) for gate in Gate}
BAD = {gate: Decision(gate, False, (f"{gate.value} is bad",)) for gate in Gate}
PASSED = (OK[Gate.EVIDENCE], OK[Gate.CLEAN_ROOM], OK[Gate.REVIEW])
FRESH = AttemptFacts(Claim.DONE)
PROVEN = replace(FRESH, decisions=PASSED, tip=Tip.SAME, is_clean=True)


@pytest.mark.row("MALA-V-20", "MALA-V-21", level="pure")
@pytest.mark.parametrize(
    ("decisions", "wanted"),
    [
        ((), Next.EVIDENCE),
        ((OK[Gate.EVIDENCE],), Next.CLEAN_ROOM),
        ((OK[Gate.EVIDENCE], OK[Gate.CLEAN_ROOM]), Next.REVIEW),
        (PASSED, Next.LOOK),
        ((BAD[Gate.EVIDENCE],), Next.TELL),
        ((OK[Gate.EVIDENCE], BAD[Gate.CLEAN_ROOM]), Next.TELL),
        ((OK[Gate.EVIDENCE], OK[Gate.CLEAN_ROOM], BAD[Gate.REVIEW]), Next.TELL),
    ],
)
def test_the_gates_are_asked_in_their_order_and_the_first_that_fails_ends_the_attempt(
    decisions: tuple[Decision, ...], wanted: Next
) -> None:
    assert rules.next_step(replace(FRESH, decisions=decisions)).next is wanted


@pytest.mark.parametrize("passed", [True, False])
def test_a_skipped_gate_counts_as_passed(passed: bool) -> None:
    skipped = Decision(Gate.REVIEW, passed, ("turned off",), is_skipped=True)
    facts = replace(PROVEN, decisions=(*PASSED[:2], skipped))
    assert rules.next_step(facts).next is Next.ACCEPT


def test_a_gate_that_gives_no_reason_is_named() -> None:
    facts = replace(FRESH, decisions=(Decision(Gate.CLEAN_ROOM, False),))
    assert rules.next_step(facts).reasons == (f"{Gate.CLEAN_ROOM.words} failed",)


@pytest.mark.row("MALA-V-87", "C-37", level="pure")
@pytest.mark.parametrize(("before", "wanted"), [(0, Next.TELL), (1, Next.TELL), (2, Next.FAIL)])
@pytest.mark.parametrize("gate", [Gate.EVIDENCE, Gate.CLEAN_ROOM])
def test_three_attempts_in_all_at_the_gates(gate: Gate, before: int, wanted: Next) -> None:
    facts = replace(FRESH, decisions=(BAD[gate],), gate_failures=before, review_failures=9)
    found = rules.next_step(facts)
    assert found.next is wanted
    assert found.reasons[0] == f"{gate.value} is bad"
    if wanted is Next.FAIL:
        where = "it was the last of 3 attempts at evidence and clean room"
        assert found.reasons[-1] == where


@pytest.mark.row("MALA-V-88", "C-37", level="pure")
@pytest.mark.parametrize(("before", "wanted"), [(0, Next.TELL), (1, Next.TELL), (2, Next.FAIL)])
def test_three_attempts_in_all_at_the_review(before: int, wanted: Next) -> None:
    facts = replace(FRESH, decisions=(BAD[Gate.REVIEW],), review_failures=before, gate_failures=9)
    found = rules.next_step(facts)
    assert found.next is wanted
    if wanted is Next.FAIL:
        assert found.reasons[-1] == "it was the last of 3 attempts at the review"


@pytest.mark.parametrize(
    ("gate", "wanted"), [(Gate.CLEAN_ROOM, Next.FAIL), (Gate.REVIEW, Next.TELL)]
)
def test_reviews_and_the_other_gates_have_a_limit_of_their_own(gate: Gate, wanted: Next) -> None:
    facts = replace(FRESH, decisions=(BAD[gate],), most_gate=1, most_review=2)
    assert rules.next_step(facts).next is wanted


@pytest.mark.parametrize(
    ("gate", "where"), [(Gate.CLEAN_ROOM, "evidence and clean room"), (Gate.REVIEW, "the review")]
)
@pytest.mark.parametrize(
    ("most", "wanted", "words"),
    [
        (1, Next.FAIL, "only one attempt is allowed at {}"),
        (2, Next.TELL, ""),
        (3, Next.TELL, ""),
    ],
)
def test_the_first_attempt_may_be_the_only_one(
    gate: Gate, where: str, most: int, wanted: Next, words: str
) -> None:
    facts = replace(FRESH, decisions=(BAD[gate],), most_gate=most, most_review=most)
    found = rules.next_step(facts)
    assert found.next is wanted
    assert found.reasons[1:] == ((words.format(where),) if words else ())


@pytest.mark.parametrize(("failures", "wanted"), [(0, Next.TELL), (1, Next.FAIL)])
def test_the_last_of_two_attempts(failures: int, wanted: Next) -> None:
    facts = replace(FRESH, decisions=(BAD[Gate.EVIDENCE],), gate_failures=failures, most_gate=2)
    found = rules.next_step(facts)
    assert found.next is wanted
    if wanted is Next.FAIL:
        assert found.reasons[-1] == "it was the last of 2 attempts at evidence and clean room"


@pytest.mark.parametrize(
    ("decisions", "is_counted"),
    [
        pytest.param((BAD[Gate.CLEAN_ROOM],), True, id="a gate"),
        pytest.param((*PASSED[:2], BAD[Gate.REVIEW]), False, id="the review"),
        pytest.param(PASSED, True, id="no gate: the branch moved"),
    ],
)
def test_which_limit_a_failed_attempt_counts_against(
    decisions: tuple[Decision, ...], is_counted: bool
) -> None:
    assert rules.is_gate_failure(decisions) is is_counted


@pytest.mark.row("MALA-V-94", level="pure")
def test_what_no_agent_can_mend_fails_at_once() -> None:
    bad = replace(BAD[Gate.CLEAN_ROOM], is_retryable=False)
    found = rules.next_step(replace(FRESH, decisions=(OK[Gate.EVIDENCE], bad)))
    assert found == Step(Next.FAIL, ("clean_room is bad",))


@pytest.mark.row("MALA-V-91", level="pure")
@pytest.mark.parametrize(
    ("progress", "wanted"), [(True, Next.TELL), (False, Next.FAIL), (None, Next.WAIT)]
)
def test_without_progress_the_attempts_end_early(progress: bool | None, wanted: Next) -> None:
    facts = replace(FRESH, decisions=(BAD[Gate.EVIDENCE],), has_progress=progress)
    found = rules.next_step(facts)
    assert found.next is wanted
    assert (rules.NO_PROGRESS in found.reasons) is (wanted is Next.FAIL)


@pytest.mark.parametrize(
    ("gate", "wanted"), [(Gate.REVIEW, Next.FAIL), (Gate.CLEAN_ROOM, Next.TELL)]
)
def test_a_review_that_goes_in_circles_ends_before_its_attempts_do(
    gate: Gate, wanted: Next
) -> None:
    found = rules.next_step(
        replace(FRESH, decisions=(BAD[gate],), goes_in_circles="it is back", has_progress=None)
        if gate is Gate.REVIEW
        else replace(FRESH, decisions=(BAD[gate],), goes_in_circles="it is back")
    )
    assert found.next is wanted
    assert ("it is back" in found.reasons) is (wanted is Next.FAIL)


@pytest.mark.row("C-08", level="pure")
@pytest.mark.parametrize(
    ("told", "wanted"), [(True, Next.TELL), (False, Next.FAIL), (None, Next.WAIT)]
)
def test_a_session_that_cannot_be_told_fails_the_run_with_that_sentence(
    told: bool | None, wanted: Next
) -> None:
    facts = replace(FRESH, decisions=(BAD[Gate.REVIEW],), can_be_told=told)
    found = rules.next_step(facts)
    assert found.next is wanted
    assert (rules.NOT_TOLD in found.reasons) is (wanted is Next.FAIL)


def test_a_dead_session_whose_work_passes_is_accepted() -> None:
    assert rules.next_step(replace(PROVEN, can_be_told=False)).next is Next.ACCEPT


@pytest.mark.row("MALA-V-82", level="pure")
@pytest.mark.parametrize(
    ("clean", "needed", "wanted"),
    [
        (True, True, Next.ACCEPT),
        (False, True, Next.TELL),
        (None, True, Next.WAIT),
        (False, False, Next.ACCEPT),
    ],
)
def test_the_tree_is_clean_before_acceptance(
    clean: bool | None, needed: bool, wanted: Next
) -> None:
    facts = replace(PROVEN, is_clean=clean, require_clean=needed)
    assert rules.next_step(facts).next is wanted
    if needed:  # also where nobody says so
        assert rules.next_step(replace(PROVEN, is_clean=clean)).next is wanted


@pytest.mark.parametrize(
    ("tip", "clean", "wanted"),
    [
        (None, None, Next.LOOK),
        (None, True, Next.WAIT),
        (None, False, Next.WAIT),
        (Tip.SAME, None, Next.WAIT),
        (Tip.MOVED, None, Next.WAIT),
    ],
)
def test_what_could_not_be_told_before_acceptance_is_waited_for(
    tip: Tip | None, clean: bool | None, wanted: Next
) -> None:
    assert rules.next_step(replace(PROVEN, tip=tip, is_clean=clean)).next is wanted


def test_a_person_who_has_to_look_is_asked_last() -> None:
    facts = replace(PROVEN, needs_person="it changes the checks")
    assert rules.next_step(facts) == Step(Next.ASK, ("it changes the checks",))
    assert rules.next_step(replace(facts, is_clean=False)).next is Next.TELL


@pytest.mark.parametrize(
    ("tip", "wanted"), [(Tip.SAME, Next.ACCEPT), (Tip.MOVED, Next.ANEW), (Tip.GONE, Next.TELL)]
)
def test_what_is_accepted_is_what_was_proven(tip: Tip, wanted: Next) -> None:
    assert rules.next_step(replace(PROVEN, tip=tip)).next is wanted


@pytest.mark.parametrize(("failures", "wanted"), [(1, Next.ANEW), (2, Next.FAIL)])
def test_a_branch_that_moves_all_the_time_uses_the_attempts_up(failures: int, wanted: Next) -> None:
    found = rules.next_step(replace(PROVEN, tip=Tip.MOVED, gate_failures=failures))
    assert found.next is wanted


@pytest.mark.row("MALA-V-34", "MALA-V-92", level="pure")
@pytest.mark.parametrize("resolution", [Resolution.NO_CHANGE, Resolution.OBSOLETE])
@pytest.mark.parametrize("tip", list(Tip))
def test_what_needs_no_commit_skips_clean_room_and_review(resolution: Resolution, tip: Tip) -> None:
    gates = (Gate.CLEAN_ROOM, Gate.REVIEW)
    made = [rules.skipped(resolution, (), gate) for gate in gates]
    assert all(one is not None and one.is_skipped and one.passed for one in made)
    assert rules.skipped(resolution, (), Gate.EVIDENCE) is None
    facts = replace(PROVEN, claim=Claim(resolution.value), tip=tip)
    # A commit that came meanwhile would be left behind.
    wanted = Next.ANEW if tip is Tip.MOVED else Next.ACCEPT
    assert rules.next_step(facts).next is wanted


@pytest.mark.row("MALA-V-66", level="pure")
def test_a_gate_that_is_off_is_skipped() -> None:
    off = {Gate.REVIEW}
    assert rules.skipped(Resolution.SUCCESS, off, Gate.CLEAN_ROOM) is None
    found = rules.skipped(Resolution.SUCCESS, off, Gate.REVIEW)
    assert found is not None and found.is_skipped and found.passed


@pytest.mark.row("MALA-V-86", level="pure")
def test_the_agent_is_told_the_reasons_and_the_number_of_the_attempt() -> None:
    step = Step(Next.TELL, ("ruff failed with exit status 1", "pytest failed"))
    said = rules.message(step, Gate.CLEAN_ROOM, 1, 2)
    assert said.startswith("labsite checked your work (attempt 1) and it did not pass: clean room.")
    assert "- ruff failed with exit status 1\n- pytest failed\n" in said
    assert "You have 2 more attempts at evidence and clean room." in said


@pytest.mark.row("MALA-V-88", level="pure")
def test_the_agent_is_told_what_is_left_of_the_attempts_where_it_failed() -> None:
    """Attempt 5 may be the second of three that failed at the review."""
    said = rules.message(Step(Next.TELL, ("P1",)), Gate.REVIEW, 5, 1)
    assert "(attempt 5)" in said and "You have 1 more attempt at the review." in said


def test_no_message_ends_as_another_did_since_a_screen_may_show_both() -> None:
    step = Step(Next.TELL, ("no commit",))
    ends = {rules.message(step, Gate.EVIDENCE, number, 2)[-14:] for number in range(1, 30)}
    assert len(ends) == 29


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (Unreviewed.NOTHING, ""),
        (Unreviewed.PART, "not reviewed in full"),
        (Unreviewed.ALL, "not reviewed"),
    ],
)
def test_how_much_nobody_reviewed_has_words(one: Unreviewed, words: str) -> None:
    assert one.words == words


def test_a_decision_is_read_as_it_was_stored() -> None:
    one = Decision(Gate.REVIEW, False, ("P1",), is_retryable=False, unreviewed=Unreviewed.ALL)
    stored = json.loads(json.dumps({**one.to_json(), "at": "later"}))
    assert rules.decision(stored) == one
    assert rules.find_unreviewed((*PASSED[:2], one)) is Unreviewed.ALL
    del stored["unreviewed"]  # of an older version
    assert rules.find_unreviewed((*PASSED[:2], rules.decision(stored))) is Unreviewed.NOTHING


def test_what_is_typed_to_an_agent_presses_no_key() -> None:
    """A reason may quote what an agent ran, letters of a terminal included."""
    step = Step(Next.TELL, ("its last run, `a\x1b[201~\x03\rb`, failed.\n\tThe end:\n\x07x\x9b0m",))
    text = rules.message(step, Gate.EVIDENCE, 1, 2)
    assert all(one.isprintable() or one in "\n\t" for one in text)
    assert "`a[201~b`, failed.\n\tThe end:\nx0m\n" in text
