"""Kept work of other hosts, asked of their workers: lists, discard, restore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from django.db.models import Count

from runs.core.ports import Lab, MaybeGiven, SeamError
from runs.hosts import facts
from runs.hosts.rules import HostState
from runs.kept import parked
from runs.kept.discard import DiscardRefused
from runs.kept.parked import Entry, Listing
from runs.kept.restore import RestoreRefused
from runs.models import Host, Parked, Project, Rescue, Settings
from trackers.base import best_pull

UNSURE = (
    "The worker there was asked, and its answer did not come: whether it happened is shown here in a "
    "moment."
)


@dataclass(frozen=True, slots=True)
class FarListing:
    """What is parked on another host. With an error it could not be asked; `counted` are told then."""

    host: str
    listing: Listing
    counted: int


def listings(lab: Lab, project: Project) -> Sequence[FarListing]:
    """What other hosts keep of a project, by name. Asks only those that keep something.

    One query where nobody else does, and none where no other host can be asked.
    """
    if lab.others is None:
        return ()
    rows = Parked.objects.filter(project=project).exclude(host=lab.host).order_by("host")
    counted = dict(rows.values_list("host").annotate(Count("pk")))
    return [FarListing(name, _listing(lab, project, name), counted[name]) for name in counted]


def _listing(lab: Lab, project: Project, name: str) -> Listing:
    try:
        at = asked(lab, name)
        told = at.parked(project.pk, 1)
        entries = [_entry(one) for one in told["entries"]]
        found = Listing(entries, int(told["total"]), 1, str(told["error"]))
    except SeamError as error:
        return Listing(error=str(error))
    except (KeyError, TypeError, ValueError) as error:
        return Listing(error=f"host {name} answered as another version of labsite does: {error}")
    pulls, pulls_error = parked.pulls_of(lab, project, [one.branch for one in entries])
    shown = [replace(one, pull=best_pull(pulls, one.branch)) for one in entries]
    return replace(found, entries=shown, pulls_error=pulls_error)


def _entry(told: dict[str, Any]) -> Entry:
    """An entry as another host tells it; what a newer one tells more is left out."""
    known = {one.name for one in fields(Entry)}
    return Entry(**{"pull": None, **{name: told[name] for name in told if name in known}})


def asked(lab: Lab, name: str) -> Any:
    """Another host's worker. Raises SeamError for one that is silent, without asking it."""
    row = Host.objects.with_silence().filter(name=name, removed_at=None).first()
    if row is None:
        raise SeamError(f"host {name} was removed")
    if facts.state_of(row, Settings.current()) is HostState.UNKNOWN:
        raise SeamError(f"host {name} gives no sign of life")
    at = lab.at(name).elsewhere
    if at is None:
        raise SeamError(f"host {name} cannot be asked from here")
    return at


def discard(lab: Lab, project: Project, host: str, branch: str, by: str, even: bool) -> str:
    """Discard a branch on another host; what came of it. Raises DiscardRefused, SeamError."""
    told = asked(lab, host).discard(project.pk, branch, by, even)
    if "refused" in told:
        raise DiscardRefused(str(told["refused"]), code=str(told.get("code", "owned")))
    if "begun" in told:
        return (
            f"{branch} is being discarded on {host}. It holds large files, which are rescued first."
        )
    done = f"{branch} was discarded on {host}. It is kept under Rescued and can be restored there."
    return f"{done} {told.get('on_origin', '')}".strip()


def host_of(lab: Lab, rescue: Rescue) -> str:
    """The other host whose repository holds a rescue; empty for this one, or when none tells."""
    repo = rescue.project.repo(lab.paths)
    if lab.others is None or lab.repos.tip(repo, rescue.ref) is not None:
        return ""
    settings = Settings.current()
    for row in Host.objects.with_silence().filter(removed_at=None).exclude(name=lab.host):
        if facts.state_of(row, settings) is HostState.UNKNOWN:
            continue
        try:
            if lab.at(row.name).repos.tip(repo, rescue.ref) is not None:
                return str(row.name)
        except SeamError:
            continue
    return ""


def restore(lab: Lab, rescue: Rescue, host: str, by: str) -> str:
    """Bring a rescue back on another host; its name there. Raises RestoreRefused, SeamError."""
    told = asked(lab, host).restore(rescue.pk, by)
    if "refused" in told:
        raise RestoreRefused(str(told["refused"]))
    return str(told["name"])


def trouble(error: SeamError) -> str:
    """What a failed act on another host means to a person."""
    return UNSURE if isinstance(error, MaybeGiven) else str(error)
