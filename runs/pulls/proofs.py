"""Reads what the project's own checks said of the commits of pull requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Q
from django.urls import reverse

from runs.core.states import AttemptState, ValidationState
from runs.models import Attempt, Project, Run, Validation
from runs.pulls.proof_rules import CheckRecord, Proof, ProofFacts, ProofState, judge_proof

MOST_RUNS = 200
MOST_RECORDS = 100
GATES, VALIDATION = "gates", "validation"
FIX = "the fix "  # how a fixer's branch is named among what was put together

_ATTEMPTS = {
    AttemptState.PASSED.value: ProofState.PASSED,
    AttemptState.FAILED.value: ProofState.FAILED,
    AttemptState.RUNNING.value: ProofState.RUNNING,
}
_VALIDATIONS = {
    ValidationState.PASSED.value: ProofState.PASSED,
    ValidationState.FAILED.value: ProofState.FAILED,
    ValidationState.RUNNING.value: ProofState.RUNNING,
}
_COLUMNS = ("project", "session", "run", "number", "state", "reason", "merged", "artifacts")


def load_proof(project: Project, branch: str, head: str | None) -> Proof:
    """Load what the checks say of one branch whose head is this commit; None: not known."""
    return load_proofs(project, {branch: head})[branch]


def load_proofs(project: Project, heads: Mapping[str, str | None]) -> dict[str, Proof]:
    """Load what the checks say of branches of a project, by branch.

    At most four queries; none where the project has no checks.

    Args:
        project: whose pull requests they are.
        heads: the commit that each branch names; None where that could not be told.
    """
    if not _has_checks(project):
        return dict.fromkeys(heads, Proof(ProofState.NONE))
    runs = Run.objects.filter(project=project, branch__in=heads).order_by("-pk")
    found = list(runs.values_list("pk", "branch", "watch_id")[:MOST_RUNS])
    records: dict[str, list[CheckRecord]] = defaultdict(list)
    if found:
        for branch, record in [*_of_attempts(found), *_of_validations(found)]:
            records[branch].append(record)
    return {
        branch: judge_proof(ProofFacts(head, records[branch])) for branch, head in heads.items()
    }


def load_failures(pulls: Sequence[tuple[Project, str]]) -> dict[tuple[int, str], str]:
    """Load how the newest validations of open pull requests failed, by project id and branch.

    One query, none where no project validates. Git is not asked, so that the text names the commit.
    """
    wanted = {(project.pk, branch) for project, branch in pulls}
    validating = {project.pk for project, _ in pulls if project.has_gates or project.checks}
    if not validating:
        return {}
    rows = Validation.objects.filter(project__in=validating, state__in=_VALIDATIONS)
    records: dict[tuple[int, str], list[CheckRecord]] = defaultdict(list)
    for row in rows.order_by("-pk").only(*_COLUMNS)[:MOST_RECORDS]:
        for piece in row.merged:
            records[(row.project_id, piece["branch"])].append(_record(row, piece))
    found = {key: judge_proof(ProofFacts(None, records[key])) for key in wanted & set(records)}
    return {key: proof.text for key, proof in found.items() if proof.state is ProofState.FAILED}


def _has_checks(project: Project) -> bool:
    if project.has_gates:
        return project.check_commands.exists()
    return bool(project.commands)


def _of_attempts(runs: Sequence[tuple[int, str, int | None]]) -> list[tuple[str, CheckRecord]]:
    branches = {pk: branch for pk, branch, _ in runs}
    rows = Attempt.objects.filter(run__in=branches, state__in=_ATTEMPTS).exclude(commit="")
    columns = rows.order_by("-pk").values_list("run_id", "number", "state", "commit", "reason")
    return [
        (
            branches[run],
            CheckRecord(
                GATES,
                _ATTEMPTS[state],
                commit,
                f"gates, attempt {number} of run {run}",
                reason=reason,
                url=reverse("runs:run-checks", args=[run]),
            ),
        )
        for run, number, state, commit, reason in columns[:MOST_RECORDS]
    ]


def _of_validations(runs: Sequence[tuple[int, str, int | None]]) -> list[tuple[str, CheckRecord]]:
    """Return the records of validations, newest first; one is about several branches."""
    branches = {branch for _, branch, _ in runs}
    about = Q(run__in={pk for pk, *_ in runs}) | Q(session__in={one for *_, one in runs if one})
    rows = Validation.objects.filter(about, state__in=_VALIDATIONS).order_by("-pk")
    return [
        (piece["branch"], _record(row, piece))
        for row in rows.only(*_COLUMNS)[:MOST_RECORDS]
        for piece in row.merged
        if piece["branch"] in branches
    ]


def _record(row: Validation, piece: Mapping[str, Any]) -> CheckRecord:
    others = [one["name"] for one in row.merged if one["branch"] != piece["branch"]]
    fixes = [name for name in others if name.startswith(FIX)]
    what, url = f"validation {row.number}", ""
    if row.session_id is not None:
        what = f"{what} of watch session {row.session_id}"
        url = reverse("runs:watch-session", args=[row.project_id, row.session_id])
    else:
        what = f"{what} of run {row.run_id}"
        url = reverse("runs:run-checks", args=[row.run_id])
    suspects = row.artifacts.get("suspects")
    return CheckRecord(
        VALIDATION,
        _VALIDATIONS[row.state],
        piece["tip"],
        what,
        name=piece["name"],
        reason=row.reason,
        others=tuple(name for name in others if name not in fixes),
        suspects=None if suspects is None else tuple(suspects),
        fix=fixes[0] if fixes else "",
        url=url,
    )
