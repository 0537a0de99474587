"""What the merge card of a pull request shows."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from runs.core.ports import Lab
from runs.models import Project
from runs.overview import queries
from runs.pulls import mergeable, proofs
from runs.pulls.comparing import Tips
from runs.pulls.proof_rules import Proof, ProofState
from runs.pulls.rules import MergeKind, Verdict, verdict
from runs.web import code
from trackers.builtin.models import PullRequest

_BUTTONS = {
    MergeKind.FORWARD: ("Merge", "Press again: merge it"),
    MergeKind.COMMIT: ("Merge with a merge commit", "Press again: merge it"),
    MergeKind.DELIVERED: ("Mark as merged", "Press again: mark it"),
}
_ALTHOUGH = {
    ProofState.FAILED: "its checks failed",
    ProofState.MISSING: "it was not checked",
    ProofState.RUNNING: "its checks still run",
}


@dataclass(frozen=True, slots=True)
class MergeBox:
    """The verdict, the button with what the reader has seen, and how a checkout gets the merge.

    `is_refused`: the project merges only what its checks passed, and they did not.
    """

    verdict: Verdict
    proof: Proof
    is_refused: bool
    can_check: bool
    button: str
    asks: str
    address: str
    files: tuple[str, ...]
    fetch: str

    @property
    def tone(self) -> str:
        if self.verdict.kind is MergeKind.MERGED:
            return "info"
        if self.verdict.can_merge:
            return "warn" if self.asks_first else "good"
        return "warn" if self.verdict.is_trouble else ""

    @property
    def asks_first(self) -> bool:
        """Whether its checks did not pass, so that a merge has to be asked for in spite of that."""
        can_fail = self.verdict.kind in (MergeKind.FORWARD, MergeKind.COMMIT)
        return can_fail and self.proof.state.needs_consent

    @property
    def although(self) -> str:
        """In spite of what it would be merged, as part of a sentence."""
        return _ALTHOUGH.get(self.proof.state, "")


def of(lab: Lab, project: Project, pull: PullRequest, ask: Tips | None = None) -> MergeBox:
    """The card; git is asked for an open one only, and what it said is kept by commits."""
    facts = mergeable.facts_of(lab, project, pull, ask)
    said = verdict(facts)
    button, asks = _BUTTONS.get(said.kind, ("", ""))
    proof = proofs.load_proof(project, pull.head, facts.head_tip)
    shown = {"head": facts.head_tip or "", "into": facts.into}
    if proof.state.needs_consent:
        shown["checks"] = proof.state
    seen = urlencode(shown)
    at = reverse("runs:pull-merge", args=[project.pk, pull.number])
    was_merged = said.kind is MergeKind.MERGED
    return MergeBox(
        said,
        proof,
        project.merges_only_passed and proof.state.needs_consent,
        # With gates the run level is begun from the run's page, since it closes the issue.
        not project.has_gates and proof.state in (ProofState.FAILED, ProofState.MISSING),
        button,
        asks,
        f"{at}?{seen}",
        tuple(code.plain(name) for name in said.files),
        queries.fetch_command(lab, project) if was_merged else "",
    )
