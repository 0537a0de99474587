"""The run level of projects with gates: what all delivered work has to pass, and what follows when
it does not."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.core.ports import Lab
from runs.core.states import NoticeKind, TrackerKind, ValidationState
from runs.forges import quota
from runs.issues import acts as issues
from runs.issues import remote
from runs.models import Project, Validation, WatchSession
from runs.timeline import announce
from runs.validation import rules, spec_models, specs
from runs.validation.rules import Verdict
from runs.validation.specs import Scope, Switch, Switches
from trackers.base import Ability, RateLimited, TrackerError, Unreachable

logger = logging.getLogger(__name__)

AGAIN_AFTER = timedelta(minutes=1)
WRITING = timedelta(minutes=5)  # how long whoever writes an issue has it to itself
BY = "labsite"
TAIL_CHARACTERS = 3000


def spec_of(project: Project, session: WatchSession | None) -> dict[str, Any] | None:
    """What the run level of a project runs, as it is stored; None for a project without gates."""
    if not project.has_gates:
        return None
    terms = spec_models.terms_of(project)
    if session is not None:
        terms = specs.over(terms, Switches.stored(session.switches))
    return {
        **specs.to_json(specs.effective(terms, Scope.RUN_LEVEL)),
        "off": sorted(terms.disabled),
        "keep_worktrees": terms.worktrees.keep_on_failure,
    }


def nothing(spec: dict[str, Any]) -> Verdict | None:
    """The verdict of a run level that has nothing to run; None where it has."""
    if Switch.RUN_LEVEL in spec["off"]:
        return Verdict(ValidationState.NOTHING, "run-level validation is turned off")
    if not spec["commands"] and not spec["e2e"]["enabled"]:
        return rules.verdict([], [])
    return None


def argvs(spec: dict[str, Any]) -> list[list[str]]:
    """The commands of a stored spec as argument lists."""
    return [list(one["argv"]) for one in spec["commands"]]


def not_clean(lab: Lab, row: Validation) -> str:
    """Why a run level may not start: files that are not committed where its work comes from.

    That is the checkout of a project whose origin labsite keeps; any other origin has no files.
    Raises SeamError.
    """
    project = row.project
    tree = Path(project.source)
    if not (row.spec and row.spec["require_clean_git"] and project.is_hosted):
        return ""
    if not (tree / ".git").exists() or not lab.repos.is_dirty(tree):
        return ""
    return (
        f"the reference tree {tree} holds files that are not committed: commit them or remove them, "
        "then have it validated again"
    )


def follow_up(lab: Lab, row: Validation) -> bool:
    """Write an issue about a run level that failed, once; False when that is to be tried again."""
    if row.spec is None or row.state != ValidationState.FAILED or row.follow_up_key:
        return True
    if Switch.FOLLOW_UP in row.spec["off"] or "follow_up_trouble" in row.artifacts:
        return True
    if not _claim(lab, row):
        return False
    known = _key_of_earlier(row)
    if known:
        with transaction.atomic():
            _note(lab, row, known, "is about the same as")
        return True
    try:
        _write(lab, row)
    except (Unreachable, RateLimited) as error:
        _later(lab, row, str(error))
        return False
    except (TrackerError, issues.IssueRefused) as error:
        _give_up(lab, row, str(error))
    finally:
        quota.settle(lab)
    return True


def _key_of_earlier(row: Validation) -> str:
    """Return the issue about the same failure of the session, which a person had repeated; else ""."""
    if not row.asked_by or row.session_id is None:
        return ""
    same = {"session": row.session_id, "reason": row.reason}
    rows = Validation.objects.filter(**same, number__lt=row.number)
    found = (
        rows.exclude(follow_up_key="").order_by("-number").values_list("follow_up_key", flat=True)
    )
    return found.first() or ""


def _claim(lab: Lab, row: Validation) -> bool:
    """Whether this call is the one that writes: worker and tick may come here in the same moment."""
    if row.not_before is not None and row.not_before > lab.now():
        return False
    unwritten = Validation.objects.filter(pk=row.pk, follow_up_key="", not_before=row.not_before)
    return bool(unwritten.update(not_before=lab.now() + WRITING))


def _write(lab: Lab, row: Validation) -> None:
    """A labelless issue starts no run. Raises TrackerError, IssueRefused."""
    project, title, body = row.project, _title(row), lab.mask(_body(row))
    if project.tracker == TrackerKind.BUILTIN:
        with transaction.atomic():
            Validation.objects.select_for_update().get(pk=row.pk)
            if _is_free(row):
                number = issues.create(lab, project, title=title, body=body, by=BY)
                _note(lab, row, str(number))
        return
    tracker = remote.able(lab, project, Ability.CREATE_ISSUE)
    # Whoever was ended between writing and noting it has left an issue of this title.
    alike = (one for one in tracker.open_issues(project.tracker_root) if one.title == title)
    found = next(alike, None) or remote.create(lab, project, title=title, body=body, by=BY)
    with transaction.atomic():
        _note(lab, row, found.key)


def _is_free(row: Validation) -> bool:
    return Validation.objects.filter(pk=row.pk, follow_up_key="").exists()


def _note(lab: Lab, row: Validation, key: str, verb: str = "was written about") -> None:
    rows = Validation.objects.filter(pk=row.pk, follow_up_key="")
    if rows.update(follow_up_key=key, not_before=None):
        row.follow_up_key = key
        _tell(lab, row, f"issue {key} {verb} the failure of validation {row.number}")


def _later(lab: Lab, row: Validation, why: str) -> None:
    text = (
        f"The issue about its failure could not be written yet: {lab.mask(why)}. It is tried again."
    )
    Validation.objects.filter(pk=row.pk).update(not_before=lab.now() + AGAIN_AFTER, warning=text)


def _give_up(lab: Lab, row: Validation, why: str) -> None:
    """What the tracker refuses, it refuses again: that is said and left."""
    row.artifacts = {**row.artifacts, "follow_up_trouble": lab.mask(why)}
    with transaction.atomic():
        Validation.objects.filter(pk=row.pk).update(artifacts=row.artifacts, not_before=None)
        _tell(lab, row, f"no issue could be written about its failure: {why}")


def _title(row: Validation) -> str:
    return f"Run-level validation failed: {_place(row)}"


def _place(row: Validation) -> str:
    if row.run is not None:
        return f"run {row.run_id} (issue {row.run.issue_key})"
    return f"validation {row.number} of watch session {row.session_id}"


def _body(row: Validation) -> str:
    """What failed, on what, and where its record is."""
    about = [f"- {one['name']} ({one['tip'][:7]})" for one in row.merged]
    parts = [
        "What was delivered passes alone and not together. The issues that it belongs to stay open.",
        f"**Failure:** {row.reason}",
        f"**Commit:** {row.commit or 'none'} on top of {row.project.default_branch}",
        "**Put together:**\n" + "\n".join(about) if about else "",
        _end_of_output(row.current),
        f"The record is {_place(row)} in labsite.",
    ]
    return "\n\n".join(part for part in parts if part)


def _end_of_output(results: Sequence[Any]) -> str:
    failed = [one for one in results if one["status"] != 0 and not one.get("skipped")]
    if not failed or not failed[-1]["tail"].strip():
        return ""
    # Indented, a fence in it ends nothing.
    tail = failed[-1]["tail"][-TAIL_CHARACTERS:].strip("\n")
    return "The end of what it printed:\n\n" + "\n".join(f"    {one}" for one in tail.split("\n"))


def _tell(lab: Lab, row: Validation, text: str) -> None:
    announce.tell(
        lab,
        NoticeKind.VALIDATION_STEP,
        text,
        project=row.project,
        run=row.run,
        watch_id=row.session_id,
    )
