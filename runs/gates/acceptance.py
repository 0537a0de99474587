"""A person says whether work is accepted that passed its gates and changes the checks themselves.

Both answers are about one attempt and its commit. Of several that answer one counts: whoever takes the
run out of its state *asking*, which the same transaction does.
"""

from __future__ import annotations

from django.db import transaction

from runs.core import writing
from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import AttemptState, Claim, Gate, GateTurn, NoticeKind
from runs.gates import attempts, reentry, rules
from runs.gates.rules import AttemptFacts, Decision, Next, Resolution, Step
from runs.models import Attempt, Run
from runs.timeline import announce

MOST_CHARACTERS = 2000
NOT_ASKED = (
    "This attempt does not wait for a person any more: somebody has answered, or there is a newer "
    "one. Nothing was changed."
)


class AcceptanceRefusedError(ActRefused):
    """The answer was not taken; the text says why."""


def find_asking(run: Run) -> Attempt | None:
    """Return the attempt of a run that a person has to look at; None where none waits."""
    if run.outcome or not run.is_checking or run.gate_turn != GateTurn.ASKING:
        return None
    newest = Attempt.objects.filter(run=run).order_by("-number").first()
    return newest if newest is not None and attempts.read_step(newest).next is Next.ASK else None


def accept(lab: Lab, run: Run, number: int, commit: str, by: str) -> None:
    """Accept an attempt as its person saw it; the next tick looks at the branch once more.

    Args:
        number: the attempt that was looked at.
        commit: its commit, in full.
        by: the name of the person.

    Raises AcceptanceRefusedError.
    """
    with transaction.atomic():
        attempt = _take(run, number, commit)
        why = f"{by} looked at the changes to the checks"
        step = attempts.serialize_step(Step(Next.ACCEPT, (why,)))
        Attempt.objects.filter(pk=attempt.pk).update(step=step)
        text = f"attempt {number} was accepted on commit {commit[:7]}"
        announce.tell(lab, NoticeKind.GATE_PASSED, text, run=run, by=by)
        _wake(lab, run)


def send_back(lab: Lab, run: Run, number: int, commit: str, text: str, by: str) -> None:
    """Have an attempt mended by its agent, as after a review that did not agree.

    Raises AcceptanceRefusedError; its `fields` name `text` where that is missing or too long.
    """
    said = writing.clean(text).strip()
    if not said or len(said) > MOST_CHARACTERS:
        why = f"Write what has to change, in at most {MOST_CHARACTERS} characters."
        raise AcceptanceRefusedError(why, code="text", fields={"text": why})
    with transaction.atomic():
        attempt = _take(run, number, commit)
        reason = f"{by} looked at it: {said}"
        made = Decision(Gate.REVIEW, False, (reason,))
        # It takes the place of what reviewers said, whose findings stay with the attempt.
        kept = [one for one in attempt.decisions if one["gate"] != Gate.REVIEW]
        kept.append({**made.to_json(), "at": lab.now().isoformat()})
        step = _decide(lab, run, attempt, made)
        Attempt.objects.filter(pk=attempt.pk).update(
            decisions=kept,
            state=AttemptState.FAILED,
            step=attempts.serialize_step(step),
            reason="; ".join(step.reasons)[: rules.REASON_CHARACTERS],
        )
        told = f"attempt {number} was sent back: {writing.one_line(said, 300)}"
        announce.tell(lab, NoticeKind.GATE_FAILED, told, run=run, by=by)
        _wake(lab, run)


def _take(run: Run, number: int, commit: str) -> Attempt:
    """Take the run out of *asking*, which one of several does. Raises AcceptanceRefusedError."""
    rows = Run.objects.checking().filter(pk=run.pk, gate_turn=GateTurn.ASKING, outcome="")
    attempt = Attempt.objects.filter(run=run).order_by("-number").first()
    is_it = attempt is not None and (attempt.number, attempt.commit) == (number, commit)
    if attempt is None or not is_it or not rows.update(gate_turn=GateTurn.DECIDED):
        raise AcceptanceRefusedError(NOT_ASKED, code="not_asked")
    return attempt


def _decide(lab: Lab, run: Run, attempt: Attempt, made: Decision) -> Step:
    """Tell the agent, or give up, by the rule of a review that failed. Raises AcceptanceRefusedError."""
    earlier = Attempt.objects.filter(run=run, number__lt=attempt.number)
    gates, reviews = attempts.count_failures(list(earlier.exclude(state=AttemptState.ERROR)))
    resolution = attempt.resolution or Resolution.SUCCESS
    facts = AttemptFacts(
        claim=Claim.DONE if resolution == Resolution.SUCCESS else Claim(resolution),
        decisions=(made,),
        gate_failures=gates,
        review_failures=reviews,
        most_gate=attempt.spec.get("most_gate", 3),
        most_review=attempt.spec.get("most_review", 3),
        can_be_told=reentry.can_be_told(lab, run),
    )
    step = rules.next_step(facts)
    if step.next is Next.WAIT:
        why = "Whether its agent still has a session could not be told. Nothing was changed. Try again."
        raise AcceptanceRefusedError(why, code="unknown")
    return step


def _wake(lab: Lab, run: Run) -> None:
    slug = run.project.slug
    transaction.on_commit(lambda: lab.bell.look(slug), robust=True)
