"""What programs are told of the gates: attempts, and the checks of a run as one document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel

from runs.core.paths import Paths
from runs.core.ports import Lab
from runs.core.states import Gate, ValidationState
from runs.gates import rules
from runs.models import Attempt, Review, Run, Validation
from runs.validation.specs import Switch

FORMAT = "labsite.checks/1"


class GateDecision(BaseModel):
    """What one gate said; one that was *skipped* has passed.

    `unreviewed`: `all` or `part` of the work, where the review passed or failed without an answer.
    """

    gate: str
    passed: bool
    reasons: list[str]
    retryable: bool
    skipped: bool
    unreviewed: str


class CommandResult(BaseModel):
    """One command. `exit_code` is null while it runs, or when a signal or its time limit ended it."""

    name: str
    kind: str
    argv: list[str]
    exit_code: int | None
    duration_seconds: float
    stdout_path: str | None
    stderr_path: str | None
    allow_fail: bool
    skipped: str
    signal: int | None
    is_over_time: bool
    trouble: str
    tests: dict[str, Any] | None


class CoverageResult(BaseModel):
    percent: float | None
    passed: bool
    report_path: str | None
    needed: float | None
    changed_percent: float | None
    reason: str


class E2EResult(BaseModel):
    passed: bool
    failure_reason: str | None


class ValidationArtifacts(BaseModel):
    """`worktree_state`: kept, removed, or null where there was none."""

    log_dir: str
    worktree_path: str | None
    worktree_state: str | None
    coverage_report: str | None
    e2e_fixture_path: str | None


class ValidationResult(BaseModel):
    passed: bool
    failures: list[str]
    command_results: list[CommandResult]
    coverage_result: CoverageResult | None
    e2e_result: E2EResult | None
    duration_seconds: float
    artifacts: ValidationArtifacts


class IssueResolution(BaseModel):
    """`outcome`: success, no_change or obsolete."""

    outcome: str
    rationale: str


class WorktreeResult(BaseModel):
    path: str
    removed: bool


class ReviewShown(BaseModel):
    reviewer: str
    state: str
    reason: str
    findings: list[dict[str, Any]]
    duration_seconds: float
    review_log_path: str | None


class GateAttempt(BaseModel):
    """One pass through the gates. `evidence` has an entry for each command that was expected."""

    number: int
    state: str
    gate: str
    claim: str
    resolution: IssueResolution | None
    context: dict[str, Any]
    commit: str
    tree: str
    evidence: list[dict[str, Any]]
    decisions: list[GateDecision]
    validation: ValidationResult | None
    worktree: WorktreeResult | None
    reviews: list[ReviewShown]
    reason: str
    began_at: datetime
    ended_at: datetime | None
    duration_seconds: float | None


class GateAttempts(BaseModel):
    items: list[GateAttempt]
    next: int | None


class RunLevel(BaseModel):
    """A validation of what its session, or it alone, delivered."""

    number: int
    state: str
    reason: str
    commit: str
    follow_up_key: str
    decision: GateDecision | None
    validation: ValidationResult
    began_at: datetime
    ended_at: datetime | None


class RunChecks(BaseModel):
    """The checks of a run. `configuration` is the spec of its newest attempt, with what is off."""

    format: str
    run_id: int
    issue_id: str
    agent_id: str
    session_id: str
    log_path: str | None
    started_at: datetime | None
    ended_at: datetime | None
    duration_seconds: float | None
    configuration: dict[str, Any]
    review_enabled: bool
    gate_attempts: int
    review_attempts: int
    resolution: IssueResolution | None
    validation: ValidationResult | None
    artifacts: ValidationArtifacts | None
    error: str | None
    attempts: list[GateAttempt]
    run_level: list[RunLevel]


def attempt(paths: Paths, row: Attempt) -> GateAttempt:
    """An attempt whose reviews were read with it."""
    found = [rules.decision(one) for one in row.decisions]
    room = next((one for one in found if one.gate is Gate.CLEAN_ROOM), None)
    same = ("number", "state", "gate", "claim", "context", "commit", "tree", "evidence", "reason")
    began = bool(row.results or row.artifacts)
    return GateAttempt(
        **{name: getattr(row, name) for name in (*same, "began_at", "ended_at")},
        resolution=_resolution(row),
        decisions=[_decision(one.to_json()) for one in found],
        validation=_result(row, bool(room and room.passed), room.reasons if room else ())
        if began
        else None,
        worktree=_worktree(row.artifacts),
        reviews=[_review(one, str(row.folder(paths))) for one in row.reviews.all()],
        duration_seconds=_seconds(row.began_at, row.ended_at),
    )


def export(lab: Lab, run: Run, rows: Sequence[Attempt], levels: Sequence[Validation]) -> RunChecks:
    """The checks of a run as one document: its attempts, oldest first, and its run level."""
    shown = [attempt(lab.paths, one) for one in rows]
    last, newest = (rows[-1], shown[-1]) if rows else (None, None)
    off = last.spec.get("off", ()) if last is not None else ()
    error = run.reason if run.outcome in ("rejected", "failed", "died", "timed_out") else None
    return RunChecks(
        format=FORMAT,
        run_id=run.pk,
        issue_id=run.issue_key,
        agent_id=run.agent,
        session_id=run.agent_session,
        log_path=str((last.context if last else {}).get("log_path") or "") or None,
        started_at=run.started_at,
        ended_at=run.ended_at,
        duration_seconds=_seconds(run.started_at, run.ended_at),
        configuration=last.spec if last is not None else {},
        review_enabled=Switch.REVIEW not in off,
        gate_attempts=len(rows),
        review_attempts=sum(bool(one.reviews) for one in shown),
        resolution=newest.resolution if newest else None,
        validation=newest.validation if newest else None,
        artifacts=newest.validation.artifacts if newest and newest.validation else None,
        error=error,
        attempts=shown,
        run_level=[_level(one) for one in levels],
    )


def _level(row: Validation) -> RunLevel:
    """What had nothing to run passed: the issues are closed. Not where gates were turned off."""
    is_skipped = row.state == ValidationState.NOTHING and row.spec is not None
    passed = row.state == ValidationState.PASSED or is_skipped
    failures = [] if passed or row.is_running else [row.reason]
    reasons = [row.reason] if is_skipped else failures
    ended = {"gate": Gate.RUN_LEVEL.value, "passed": passed, "reasons": reasons}
    more = {"is_retryable": False, "is_skipped": is_skipped}
    decision = None if row.is_running else {**ended, **more}
    same = ("number", "state", "reason", "commit", "follow_up_key", "began_at", "ended_at")
    return RunLevel(
        **{name: getattr(row, name) for name in same},
        decision=_decision(decision) if decision else None,
        validation=_result(row, passed, failures),
    )


def _decision(one: Mapping[str, Any]) -> GateDecision:
    return GateDecision(
        gate=one["gate"],
        passed=one["passed"],
        reasons=list(one["reasons"]),
        retryable=one["is_retryable"],
        skipped=one["is_skipped"],
        unreviewed=one.get("unreviewed", ""),
    )


def _result(row: Attempt | Validation, passed: bool, failures: Sequence[str]) -> ValidationResult:
    made = row.artifacts
    names = ("worktree_path", "worktree_state", "coverage_report", "e2e_fixture_path")
    log_dir = str(made.get("log_dir") or "")
    commands = [_command(one, log_dir) for one in row.results]
    e2e = getattr(row, "e2e", None)
    return ValidationResult(
        passed=passed,
        failures=list(failures),
        command_results=commands,
        coverage_result=_coverage(row.coverage),
        e2e_result=E2EResult(passed=e2e["passed"], failure_reason=e2e.get("failure_reason"))
        if e2e
        else None,
        duration_seconds=round(sum(one.duration_seconds for one in commands), 2),
        artifacts=ValidationArtifacts(
            log_dir=log_dir, **{name: made.get(name) or None for name in names}
        ),
    )


def _command(one: Mapping[str, Any], log_dir: str) -> CommandResult:
    """A result of a project without gates has no name of its own."""
    same = ("argv", "signal", "is_over_time", "trouble")
    return CommandResult(
        **{name: one[name] for name in same},
        name=one.get("command") or one["argv"][0],
        kind=one.get("kind", ""),
        exit_code=one["status"],
        duration_seconds=one["seconds"],
        stdout_path=_path(log_dir, one.get("stdout", one["name"])),
        stderr_path=_path(log_dir, one.get("stderr")),
        allow_fail=bool(one.get("allow_fail")),
        skipped=one.get("skipped") or "",
        tests=one.get("tests"),
    )


def _coverage(found: Mapping[str, Any] | None) -> CoverageResult | None:
    if not found:
        return None
    return CoverageResult(
        percent=found.get("percent"),
        passed=bool(found.get("passed")),
        report_path=found.get("report_path") or None,
        needed=found.get("needed"),
        changed_percent=found.get("changed_percent"),
        reason=found.get("reason") or "",
    )


def _resolution(row: Attempt) -> IssueResolution | None:
    if not row.resolution:
        return None
    return IssueResolution(outcome=row.resolution, rationale=row.rationale)


def _worktree(made: Mapping[str, Any]) -> WorktreeResult | None:
    path = made.get("worktree_path")
    if not path:
        return None
    return WorktreeResult(path=path, removed=made.get("worktree_state") == "removed")


def _review(row: Review, folder: str) -> ReviewShown:
    same = ("reviewer", "state", "reason", "findings")
    return ReviewShown(
        **{name: getattr(row, name) for name in same},
        duration_seconds=row.seconds,
        review_log_path=_path(folder, row.log_name),
    )


def _path(folder: str, name: str | None) -> str | None:
    return f"{folder}/{name}" if folder and name else None


def _seconds(began: datetime | None, ended: datetime | None) -> float | None:
    return round((ended - began).total_seconds(), 2) if began and ended else None
