"""What pages show of a project's tracker: where it is, what it can do, what was heard of it last."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.urls import reverse

from runs.core.ports import Lab
from runs.core.states import TrackerKind
from runs.forges import hook_rules
from runs.models import Forge, HookDelivery, Project, Quota, Settings
from runs.web import addresses
from trackers.base import Ability

DELIVERIES = 20
KINDS: Mapping[str, str] = {
    TrackerKind.BUILTIN: "kept by labsite itself",
    TrackerKind.GITEA: "Gitea or Forgejo",
    TrackerKind.GITHUB: "GitHub",
    TrackerKind.BEADS: "beads",
}
# What labsite does with each ability, and what that means where it is missing.
WORDS: Mapping[Ability, tuple[str, str]] = {
    Ability.PULLS: ("pull requests", "pull requests (a run is done when its commits are pushed)"),
    Ability.CREATE_PULL: ("agents open pull requests through labsite", ""),
    Ability.MERGE: ("merging", "merging here"),
    Ability.CHECKS: ("checks of a commit", ""),
    Ability.BLOCKERS: (
        "issues that wait for others",
        "native blockers",
    ),
    Ability.COMMENT: ("comments", "comments"),
    Ability.LABEL: ("labels", "changing labels"),
    Ability.CLOSE: ("closing issues", "closing issues"),
    Ability.CREATE_ISSUE: ("writing issues", "writing issues"),
    Ability.STATUS: ("a status of its own for work that goes on", ""),
    Ability.HOOKS: ("webhooks", ""),
    Ability.MILESTONES: ("milestones", ""),
}


@dataclass(frozen=True, slots=True)
class Card:
    """One project's tracker."""

    project: Project
    kind: str
    place: str
    url: str
    forge: Forge | None
    abilities: frozenset[Ability]
    deliveries: Sequence[HookDelivery] = ()
    waits_until: datetime | None = None
    public_address: str = ""
    is_hook_silent: bool = False

    @property
    def can(self) -> list[str]:
        return [can for one, (can, _) in WORDS.items() if one in self._here]

    @property
    def cannot(self) -> list[str]:
        return [cannot for one, (_, cannot) in WORDS.items() if cannot and one not in self._here]

    @property
    def _here(self) -> frozenset[Ability]:
        """What can be done from here: labsite merges its own pull requests, a forge those of its."""
        if self.is_builtin:
            return self.abilities | {Ability.MERGE}
        return self.abilities - {Ability.MERGE}

    @property
    def has_hooks(self) -> bool:
        return Ability.HOOKS in self.abilities

    @property
    def has_secret(self) -> bool:
        """Whether its webhook has a secret; needs `has_hook_secret` of the board."""
        return bool(getattr(self.project, "has_hook_secret", False))

    @property
    def asked_every(self) -> timedelta | None:
        """How often its ready queue is asked for."""
        seconds = self.project.asked_every
        return timedelta(seconds=seconds) if seconds is not None else None

    @property
    def can_make_labels(self) -> bool:
        return Ability.CREATE_LABEL in self.abilities

    @property
    def is_builtin(self) -> bool:
        return self.project.tracker == TrackerKind.BUILTIN

    @property
    def hook_path(self) -> str:
        """Where its webhook delivers; empty for a tracker that has none."""
        return hook_path(self.project) if self.has_hooks else ""

    @property
    def settings_url(self) -> str:
        return addresses.of("runs:tracker", self.project.pk)


def of(lab: Lab, project: Project, settings: Settings) -> Card:
    """The card of a project: three queries for one on a forge, none for any other."""
    abilities = abilities_of(lab, project)
    forge = Forge.objects.filter(pk=project.forge_id).first() if project.forge_id else None
    repository = project.tracker_root.partition("/")[2] if forge is not None else ""
    rows = HookDelivery.objects.filter(project=project)
    return Card(
        project,
        KINDS.get(project.tracker, project.tracker),
        repository or (project.tracker_root if project.tracker == TrackerKind.BEADS else ""),
        f"{forge.web}/{repository}" if forge is not None else "",
        forge,
        abilities,
        list(rows[:DELIVERIES]) if getattr(project, "has_hook_secret", False) else (),
        _waits_until(lab, forge) if forge is not None else None,
        settings.public_address.rstrip("/"),
        _is_hook_silent(lab, project),
    )


def _is_hook_silent(lab: Lab, project: Project) -> bool:
    """Whether the webhook should have told of something; needs `has_hook_secret` of the board."""
    since = project.hook_since or project.created_at
    heard, changed = project.hooked_at, project.changed_at
    has_secret = bool(getattr(project, "has_hook_secret", False))
    return has_secret and hook_rules.is_silent(lab.now(), since, heard, changed)


def _waits_until(lab: Lab, forge: Forge) -> datetime | None:
    """Until when the forge said to wait, if that is still to come."""
    account = forge.account
    rows = Quota.objects.filter(host=account.host, account=account.id)
    until = rows.values_list("blocked_until", flat=True).first()
    return until if until is not None and until > lab.now() else None


def hook_path(project: Project) -> str:
    """The door for a project's webhook."""
    return reverse("runs:hook", args=[project.slug])


def abilities_of(lab: Lab, project: Project) -> frozenset[Ability]:
    """What the project's tracker can do; nothing when labsite cannot drive it."""
    tracker = lab.tracker_for(project.tracker) if project.tracker else None
    return frozenset(tracker.abilities) if tracker is not None else frozenset()


def lacks(lab: Lab, project: Project, *wanted: Ability) -> Collection[Ability]:
    """Those of the abilities that the project's tracker does not declare; none if nobody can tell."""
    abilities = abilities_of(lab, project)
    return set(wanted) - abilities if abilities else ()
