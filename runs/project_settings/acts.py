"""Changes a project's own settings: one transaction, told, and never over what somebody else just stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from runs.core import naming
from runs.core.ports import Lab
from runs.core.states import NoticeKind
from runs.forges import cadence
from runs.models import Project
from runs.settings import edits
from runs.settings.acts import TuningRefused, describe
from runs.timeline import announce

# By the pages on which a person finds them. What has a page and an act of its own is not among them.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "starting": (
        *("parallel_runs", "trusted", "reads_outsiders", "poll_seconds"),
        *("priority_labels", "weight", "host_label"),
    ),
    "setup": (
        *("has_submodules", "setup", "setup_again", "setup_after", "setup_removal"),
        *("setup_minutes", "sparse_folders", "branch_prefix"),
    ),
    "agents": ("agent", "committer"),
    "limits": (
        *("run_budget_minutes", "waits_stop_budget", "run_tokens_limit", "run_cost_limit"),
        *("day_tokens_limit", "day_cost_limit"),
    ),
    "pulls": (
        "on_closed_issue",
        "merges_only_passed",
        "sends_back_red_checks",
        "no_checks_minutes",
    ),
    "notices": ("is_badge_public",),
    "upkeep": ("disk_quota_mb", "signals"),
}
NAMES = frozenset(name for names in GROUPS.values() for name in names)


def store(
    lab: Lab, project: Project, values: Mapping[str, Any], *, by: str, seen: str = ""
) -> bool:
    """Store these settings; False when they were so already.

    `seen` is the mark of what a form showed. Raises TuningRefused, which says at each wrong field why,
    and ChangedMeanwhile when somebody else changed one of them since; then nothing was stored.
    """
    unknown = {name: "There is no such setting." for name in values if name not in NAMES}
    if unknown:
        raise TuningRefused(" ".join(unknown.values()), fields=unknown)
    with transaction.atomic():
        row, after = (Project.objects.select_related("agent").get(pk=project.pk) for _ in "12")
        before = {name: getattr(row, name) for name in values}
        edits.check(seen, before)
        changed = {name: value for name, value in values.items() if before[name] != value}
        for name, value in changed.items():
            setattr(after, name, value)
        _check(after, changed)
        if not changed:
            return False
        edits.store(Project.objects.filter(pk=row.pk), before, changed | _past(row, changed))
        text = describe(row, after, changed)
        announce.tell(lab, NoticeKind.SETTING_CHANGED, text, project=project, by=by)
        # What may start may have changed, however seldom its tracker is asked.
        cadence.wake(lab, project.pk)
        transaction.on_commit(lambda: lab.bell.look(project.slug), robust=True)
    return True


def _past(before: Project, changed: Mapping[str, Any]) -> dict[str, Any]:
    """What stays known of a setting that was replaced: branches keep the prefix that they have."""
    if "branch_prefix" not in changed:
        return {}
    return {"past_prefixes": list(before.claim_prefixes)}


def _check(project: Project, changed: Mapping[str, Any]) -> None:
    """The limits of the model's own fields, as the admin's form checks them."""
    if "branch_prefix" in changed:
        try:
            naming.check_prefix(project.branch_prefix, project.default_branch)
        except ValueError as error:
            raise TuningRefused(str(error), fields={"branch_prefix": str(error)}) from error
    others = {field.name for field in Project._meta.fields} - set(changed)
    try:
        project.clean_fields(exclude=others)
    except ValidationError as error:
        wrong = {name: " ".join(said) for name, said in error.message_dict.items()}
        raise TuningRefused(" ".join(wrong.values()), fields=wrong) from error
