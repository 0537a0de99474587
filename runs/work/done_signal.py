"""The one done signal (C-07): two kinds of proof, each told in the words of its kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from runs.domain import evidence
from runs.domain.evidence import Evidence
from runs.domain.states import TrackerKind
from runs.models import Run
from trackers.base import Pull, PullState, best_pull, counts
from trackers.keys import evidence_of

CLOCKS_APART = timedelta(minutes=2)
URL_CHARACTERS = 500  # a longer one would be cut and lead nowhere


@dataclass(frozen=True, slots=True)
class Signal:
    """Whether the done signal is there, None: could not tell; with its proof, or what is missing.

    `missing` is written as "no …". `seen` is kept on the row of a run that ends by it.
    """

    is_done: bool | None
    proof: str = ""
    missing: str = "no pull request"
    seen: Mapping[str, object] = field(default_factory=dict)


def of_pulls(run: Run, pulls: Sequence[Pull] | None) -> Signal:
    """A pull request of the run's branch that counts (LAB-29 to LAB-33)."""
    if pulls is None:
        return Signal(None)
    pull = best_pull(_of_this_run(run, pulls), run.branch)
    if pull is None or not counts(pull):
        return Signal(False)
    url = pull.url if len(pull.url) <= URL_CHARACTERS else ""
    seen = {"pull_number": pull.number, "pull_url": url}
    return Signal(True, f"pull request {pull.number} is {pull.state}", seen=seen)


def of_evidence(run: Run, found: Evidence) -> Signal:
    """Commits on origin that name the issue, where there are no pull requests."""
    words = evidence_of(run.project.tracker, run.issue_key)
    lacks = evidence.lacking(found, run.branch, words)
    commit = (found.named_in or "")[: evidence.SHORT]
    return Signal(
        evidence.is_delivered(found),
        f"commit {commit} names the issue, and origin has {run.branch}",
        lacks[0] if lacks else "no proof of delivery",
        {"proven": evidence.told(found)},
    )


def _of_this_run(run: Run, pulls: Sequence[Pull]) -> list[Pull]:
    """Without what was merged of an earlier run of the same issue before this one began.

    An open one counts whenever it was made: it is the delivery that waits (LAB-77). A forge tells
    the time of its own clock, in whole seconds.
    """
    if run.is_adopted:
        return list(pulls)
    is_ours = run.project.tracker == TrackerKind.BUILTIN
    began = run.requested_at if is_ours else run.requested_at - CLOCKS_APART
    return [
        pull
        for pull in pulls
        if pull.state is not PullState.MERGED or pull.created_at is None or pull.created_at >= began
    ]
