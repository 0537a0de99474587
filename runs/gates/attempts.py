"""Attempts as rows: how one is made, what was decided in it, what follows from that."""

from __future__ import annotations

from collections.abc import Sequence

from runs.changed_files import check_files
from runs.core import tokens
from runs.core.ports import Lab
from runs.core.states import Gate
from runs.gates import rules
from runs.gates.rules import Decision, Next, Step
from runs.models import Attempt, Review, Run
from runs.reviewers import rules as review_rules
from runs.reviewers.round_rules import Round
from runs.reviewers.rules import Finding, ReviewState
from runs.validation import specs
from runs.validation.spec_models import limits_of, terms_of
from runs.validation.specs import Scope, Switch


def make_attempt(lab: Lab, run: Run) -> Attempt:
    """Return the next attempt of a run, not stored yet; what it is about is fixed by the evidence gate."""
    before = Attempt.objects.filter(run=run).order_by("-number").first()
    terms = terms_of(run.project, run.watch.switches if run.watch is not None else None)
    spec = specs.to_json(specs.effective(terms, Scope.PER_ISSUE))
    limits = limits_of(run.project)
    reviewers = run.project.reviewers.filter(is_on=True).values_list("command", flat=True)
    return Attempt(
        run=run,
        project=run.project,
        host=lab.host,
        number=before.number + 1 if before is not None else 1,
        claim=run.claim,
        rationale=run.claim_reason,
        evidence_from=before.evidence_from if before is not None else {},
        spec={
            **spec,
            "off": sorted(terms.disabled),
            "guarded": check_files.list_guarded_commands(terms, reviewers),
            "lacking": list(specs.lacking(terms, Scope.PER_ISSUE)),
            "keep_worktrees": terms.worktrees.keep_on_failure,
            "person_for_check_changes": limits.person_for_check_changes,
            "most_gate": limits.max_gate_attempts,
            "most_review": limits.max_review_attempts,
        },
        mark=tokens.new_mark(),
        began_at=lab.now(),
    )


def list_gates_off(attempt: Attempt) -> set[Gate]:
    """Return the gates that were turned off when an attempt began."""
    return {Gate.REVIEW} if Switch.REVIEW in attempt.spec.get("off", ()) else set()


def read_decisions(attempt: Attempt) -> tuple[Decision, ...]:
    """Return what the gates said in an attempt, in their order."""
    return tuple(rules.decision(one) for one in attempt.decisions)


def read_rounds(run: Run) -> list[Round]:
    """Return what each review of a run found, the oldest first. One query."""
    rows = Review.objects.filter(attempt__run=run, state=ReviewState.FAILED)
    found: dict[int, list[Finding]] = {}
    for number, stored in rows.order_by("attempt__number", "pk").values_list(
        "attempt__number", "findings"
    ):
        found.setdefault(number, []).extend(review_rules.finding(one) for one in stored)
    return [Round(one) for one in found.values()]


def describe_unreviewed(attempt: Attempt) -> str:
    """What has to stand behind "passed" where nobody reviewed the work, or not all of it."""
    words = rules.find_unreviewed(read_decisions(attempt)).words
    return f", {words}" if words else ""


def find_person_reason(attempt: Attempt) -> str:
    """Return why a person has to look before an attempt is accepted; empty where nobody has to."""
    files = attempt.context.get(check_files.KEY) or ()
    if not files or not attempt.spec.get("person_for_check_changes"):
        return ""
    count = f"{len(files)} file{'' if len(files) == 1 else 's'}"
    return f"it changes {count} of the checks that are to prove it"


def count_failures(attempts: Sequence[Attempt]) -> tuple[int, int]:
    """Return how many of these attempts failed at a gate, and how many at the review."""
    made = [rules.is_gate_failure(read_decisions(one)) for one in attempts]
    return sum(made), len(made) - sum(made)


def read_step(attempt: Attempt) -> Step:
    """Return what an ended attempt came to, as it was stored with it."""
    stored = attempt.step
    return Step(Next(stored.get("next", Next.FAIL)), tuple(stored.get("reasons", ())))


def serialize_step(step: Step) -> dict[str, object]:
    """Return a step as `read_step` reads it."""
    return {"next": step.next.value, "reasons": list(step.reasons)}
