"""What the merge card of a pull request shows."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from runs.core.ports import Lab
from runs.models import Project
from runs.overview import queries
from runs.pulls import mergeable
from runs.pulls.comparing import Tips
from runs.pulls.rules import MergeKind, Verdict, verdict
from runs.web import code
from trackers.builtin.models import PullRequest

_BUTTONS = {
    MergeKind.FORWARD: ("Merge", "Press again: merge it"),
    MergeKind.COMMIT: ("Merge with a merge commit", "Press again: merge it"),
    MergeKind.DELIVERED: ("Mark as merged", "Press again: mark it"),
}


@dataclass(frozen=True, slots=True)
class MergeBox:
    """The verdict, the button with what the reader has seen, and how a checkout gets the merge."""

    verdict: Verdict
    button: str
    asks: str
    address: str
    files: tuple[str, ...]
    fetch: str

    @property
    def tone(self) -> str:
        if self.verdict.kind is MergeKind.MERGED:
            return "info"
        return "good" if self.verdict.can_merge else "warn" if self.verdict.is_trouble else ""


def of(lab: Lab, project: Project, pull: PullRequest, ask: Tips | None = None) -> MergeBox:
    """The card; git is asked for an open one only, and what it said is kept by commits."""
    facts = mergeable.facts_of(lab, project, pull, ask)
    said = verdict(facts)
    button, asks = _BUTTONS.get(said.kind, ("", ""))
    seen = urlencode({"head": facts.head_tip or "", "into": facts.into})
    at = reverse("runs:pull-merge", args=[project.pk, pull.number])
    was_merged = said.kind is MergeKind.MERGED
    return MergeBox(
        said,
        button,
        asks,
        f"{at}?{seen}",
        tuple(code.plain(name) for name in said.files),
        queries.fetch_command(lab, project) if was_merged else "",
    )
