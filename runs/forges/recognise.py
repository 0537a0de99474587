"""Which trackers the issues of a repository can be on, as its address says; nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.core.ports import Lab
from runs.core.states import ForgeKind
from runs.forges import acts
from runs.forges.acts import ForgeRefused, Recognised
from runs.models import Forge
from runs.projects import acts as projects
from runs.projects.acts import ProjectRefused
from trackers.base import Finding


@dataclass(frozen=True, slots=True)
class Offer:
    """What was found behind an address. `note` says why no forge was, where one was looked for."""

    found: Recognised | None = None
    has_beads: bool = False
    note: str = ""

    @property
    def is_choice(self) -> bool:
        """Whether there is anything beside the tracker that labsite keeps itself."""
        return self.found is not None or self.has_beads

    @property
    def forges(self) -> Sequence[Forge]:
        """The accounts that are set up there."""
        return self.found.forges if self.found is not None else ()


def offer(lab: Lab, source: str, *, may_ask: bool = True) -> Offer:
    """The trackers that a new project of this source may have. Never raises.

    Without `may_ask` only by what is known of its host.
    """
    try:
        read, url, _ = projects.read_address(lab, source)
    except ProjectRefused as refused:
        return Offer(note=refused.text)
    has_beads = read.is_path and (Path(read.text) / ".beads").is_dir()
    if not url:
        return Offer(has_beads=has_beads)
    try:
        return Offer(acts.recognise(lab, url, may_ask=may_ask), has_beads)
    except ForgeRefused as refused:
        return Offer(None, has_beads, refused.text)


def try_out(lab: Lab, found: Recognised, forge: Forge, label: str) -> Sequence[Finding]:
    """The connection test of a project that is not added yet, with an account that is set up."""
    return lab.forges.try_out(ForgeKind(forge.kind), forge.account, found.place.name, label)
