"""What an agent says of its issue where gates prove it: done, nothing to change, or obsolete."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from runs.core.ports import Lab
from runs.core.refusal import ActRefused
from runs.core.states import Claim, NoticeKind, RunState
from runs.models import Attempt, Run
from runs.timeline import announce
from runs.validation import specs
from runs.validation.spec_models import terms_of
from runs.validation.specs import Scope, Spec
from trackers.keys import evidence_of

LONGEST = 2000
_AGENT_WORKS = (RunState.STARTING, RunState.WORKING)


class ClaimRefused(ActRefused):
    """Nothing was stored; the text says why."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What an agent is told: the sentence, and what its work is expected to show.

    `is_checking`: its work is being checked already, so that its word changed nothing.
    """

    text: str
    expects: tuple[str, ...] = ()
    is_checking: bool = False


def claim(lab: Lab, run: Run, said: Claim, rationale: str, by: str) -> Claimed:
    """Keep an agent's word and ask for a look at it. Safe to repeat. Raises ClaimRefused."""
    if not run.is_gated:
        raise ClaimRefused(_no_gates(run), code="no_gates")
    reason = lab.mask(rationale.strip())
    if said is not Claim.DONE and not reason:
        text = "Say in a sentence why: -m TEXT. Nothing was stored."
        raise ClaimRefused(text, field="message")
    if len(reason) > LONGEST:
        text = f"Write at most {LONGEST} characters. Nothing was stored."
        raise ClaimRefused(text, field="message")
    if run.state not in _AGENT_WORKS or not _store(lab, run, said, reason, by):
        run.refresh_from_db(fields=["state", "outcome"])
        if run.state != RunState.CHECKING:
            text = "This run does not work any more, so nothing was stored."
            raise ClaimRefused(text, code="not_working")
        return Claimed(f"{being_checked(run)}. You can stop here.", is_checking=True)
    return Claimed(f"You say {_SAID[said]}: labsite checks your work now.", expected(run, said))


_SAID = {
    Claim.DONE: "that you are done",
    Claim.NO_CHANGE: "that nothing has to be changed",
    Claim.OBSOLETE: "that the issue is obsolete",
}


def being_checked(run: Run) -> str:
    """That the work of a run is being checked, without a full stop."""
    found = Attempt.objects.running().filter(run=run).values_list("number", flat=True).first()
    return f"labsite checks your work (attempt {found or run.attempts + 1})"


def spec_of(run: Run) -> Spec:
    """What proves an issue in a run's project, with the switches of its session."""
    terms = terms_of(run.project, run.watch.switches if run.watch is not None else None)
    return specs.effective(terms, Scope.PER_ISSUE)


def expected(run: Run, said: Claim) -> tuple[str, ...]:
    """What the gates look for, so that an agent that lacks something sees it at once."""
    clean = "no files in the worktree that are not committed"
    if said is not Claim.DONE:
        return (clean,)
    word = evidence_of(run.project.tracker, run.issue_key)[0]
    spec = spec_of(run)
    names = ", ".join(one.name for one in spec.commands)
    ran = (f"that these ran and passed on it (labctl check): {names}",) if names else ()
    tree = (clean,) if spec.require_clean_git else ()
    return (f"a commit on {run.branch} that names {word}", *ran, *tree)


def _store(lab: Lab, run: Run, said: Claim, reason: str, by: str) -> bool:
    """Store the word; False when the run does not work any more. Told once, however often said."""
    rows = Run.objects.active().filter(pk=run.pk, state__in=_AGENT_WORKS)
    with transaction.atomic():
        is_known = rows.filter(
            claim=said, claim_reason=reason, look_asked_at__isnull=False
        ).exists()
        if not rows.update(claim=said, claim_reason=reason, look_asked_at=lab.now()):
            return False
        if not is_known:
            text = (
                f"the agent says: {said.value.replace('_', ' ')}{f', {reason}' if reason else ''}"
            )
            announce.tell(lab, NoticeKind.RUN_STEP, text, run=run, by=by)
        slug = run.project.slug
        transaction.on_commit(lambda: lab.bell.look(slug), robust=True)
    return True


def _no_gates(run: Run) -> str:
    if run.amends is not None:
        return "This run adds to a pull request: push, then labctl done. Nothing was stored."
    return (
        "This project has no gates, so nobody would check that: deliver as your task says. "
        "Nothing was stored."
    )
