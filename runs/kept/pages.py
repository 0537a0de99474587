"""Facts of the pages of kept work: what is parked, what was rescued, what a rescue holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.http import Http404
from django.template.loader import render_to_string
from django.utils.text import slugify

from runs.core import budgets
from runs.core.ports import Lab
from runs.hosts import kept_elsewhere
from runs.hosts.kept_elsewhere import FarListing
from runs.kept import discard, disk, parked, retention
from runs.models import Project, Rescue, Run, Settings
from runs.pulls import diff

RESCUES = 50


def strip(lab: Lab, project: Project, page: int, can_act: bool) -> Mapping[str, Any]:
    """The list of parked branches as a page, a fragment and the answer to an act show it."""
    found = parked.listing(lab, project, page)
    ids = _ids([entry.branch for entry in found.entries])
    rows = [
        {"entry": entry, "id": name, "age": budgets.short(lab.now() - entry.at)}
        for name, entry in zip(ids, found.entries, strict=True)
    ]
    return {
        **discards(project, found.page),
        "listing": found,
        "rows": rows,
        "far": [_far(lab, one) for one in kept_elsewhere.listings(lab, project)],
        "can_act": can_act,
        "now": lab.now(),
    }


def _far(lab: Lab, one: FarListing) -> Mapping[str, Any]:
    """What another host keeps, with names in the page that no row of this one has."""
    ids = _ids([entry.branch for entry in one.listing.entries])
    rows = [
        {
            "entry": entry,
            "id": f"{slugify(one.host)}-{name}",
            "age": budgets.short(lab.now() - entry.at),
        }
        for name, entry in zip(ids, one.listing.entries, strict=True)
    ]
    more = max(0, one.listing.total - len(rows))
    return {
        "host": one.host,
        "listing": one.listing,
        "rows": rows,
        "counted": one.counted,
        "more": more,
    }


def discards(project: Project, page: int) -> Mapping[str, Any]:
    """How far long discards are, from their rows alone, so that it can be asked for often."""
    rows = discard.of(project)
    going = [one for one in rows if not one.error]
    failed = [one for one in rows if one.error]
    return {
        "project": project,
        "page_number": page,
        "discards": {"open": going, "failed": failed, "is_over": False},
    }


def discards_html(project: Project, page: int) -> str:
    """The fragment that replaces itself while something is being discarded; then it asks for the list."""
    context = discards(project, page)
    context["discards"]["is_over"] = True
    return render_to_string("kept/_discards.html", dict(context))


def _ids(branches: Sequence[str]) -> list[str]:
    """A name for each row in the page, alike at each refresh; no two rows have the same."""
    slugs = [slugify(branch) for branch in branches]
    return [
        slug
        if slugs.count(slug) == 1
        else f"{slug}-{hashlib.sha256(branch.encode()).hexdigest()[:8]}"
        for slug, branch in zip(slugs, branches, strict=True)
    ]


def strip_html(lab: Lab, project: Project, page: int, can_act: bool) -> str:
    return render_to_string("kept/_list.html", dict(strip(lab, project, page, can_act)))


def rescues(lab: Lab, project: Project) -> Mapping[str, Any]:
    """What was rescued, newest first."""
    rows = Rescue.objects.filter(project=project)
    found = list(rows[: RESCUES + 1])
    return {
        "project": project,
        "rescues": _with_times(lab, found[:RESCUES]),
        "has_more": len(found) > RESCUES,
        "rescue_days": Settings.current().rescue_days,
        "now": lab.now(),
    }


def _with_times(lab: Lab, rows: Sequence[Rescue]) -> list[tuple[Rescue, datetime]]:
    """Each rescue with the earliest moment at which it goes: only days that labsite works count."""
    names = {one.pk: retention.of_rescue(one.ref, one.project_id) for one in rows}
    left = retention.left(lab, names.values())
    now, full = lab.now(), timedelta(days=Settings.current().rescue_days)
    return [(one, max(one.expires_at, now + left.get(names[one.pk], full))) for one in rows]


def disk_use(project: Project) -> Mapping[str, Any]:
    """Disk use beside the quota, as last measured."""
    return {"disk": disk.of(project, Settings.current())}


def held(lab: Lab, rescue: Rescue) -> Mapping[str, Any]:
    """What a rescue holds: files that were not committed with their diffs, and the commits' files."""
    host = kept_elsewhere.host_of(lab, rescue)
    found = parked.held(lab.at(host) if host else lab, rescue)
    ((_, until),) = _with_times(lab, [rescue])
    return {
        "project": rescue.project,
        "rescue": rescue,
        "host": host,
        "until": until,
        "held": found,
        "files": diff.files(found.uncommitted, found.patch),
        "now": lab.now(),
    }


def left_by(project: Project, branch: str) -> int | None:
    """The newest run of a branch, whose page shows what is on it."""
    rows = Run.objects.filter(project=project, branch=branch).order_by("-pk")
    return rows.values_list("pk", flat=True).first()


def project_of(project_id: int) -> Project:
    found = Project.objects.defer("token").filter(pk=project_id).first()
    if found is None:
        raise Http404
    return found


def rescue_of(project_id: int, rescue_id: int) -> Rescue:
    found = Rescue.objects.select_related("project").filter(pk=rescue_id, project=project_id)
    one = found.first()
    if one is None:
        raise Http404
    return one
