"""What the overview makes of the loaded runs: its numbers, and what needs a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from statistics import median

from runs.domain import budgets
from runs.domain.states import Outcome, ProjectState
from runs.models import Project, Run
from runs.web import addresses
from runs.web.board import Board

NEEDS = 12

_BAD = (Outcome.DIED, Outcome.TIMED_OUT, Outcome.FAILED, Outcome.REJECTED)
_NEUTRAL = (Outcome.STOPPED, Outcome.NO_CHANGE, Outcome.OBSOLETE)


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a person has to look at."""

    id: str
    tone: str
    title: str
    what: str
    why: str
    url: str


@dataclass(frozen=True, slots=True)
class Stats:
    """The numbers of the overview. None where there is no fact behind one."""

    taken: int
    cap: int
    ready: int
    claimed: int
    ended: int
    success: int | None
    counted: int
    median: timedelta | None

    @property
    def slots(self) -> list[bool]:
        """One mark a slot, the taken ones first."""
        return [n < self.taken for n in range(max(self.cap, self.taken))]


def stats(picture: Board) -> Stats:
    """The numbers, from the runs of the last days that were loaded."""
    now = picture.facts.now
    ended = [run for run in picture.runs if run.ended_at is not None and run.did_start]
    week = [run for run in ended if run.ended_at and run.ended_at >= now - timedelta(days=7)]
    counted = [run for run in week if run.outcome not in _NEUTRAL]
    good = sum(run.outcome == Outcome.SUCCEEDED for run in counted)
    lengths = [
        budgets.age(run.ended_at, run.started_at).total_seconds() for run in counted if run.ended_at
    ]
    return Stats(
        taken=len(picture.active),
        cap=picture.facts.settings.session_cap,
        ready=len(picture.free),
        claimed=len(picture.ready) - len(picture.free),
        ended=sum(1 for run in ended if run.ended_at and run.ended_at >= now - timedelta(days=1)),
        success=round(100 * good / len(counted)) if counted else None,
        counted=len(counted),
        median=timedelta(seconds=median(lengths)) if lengths else None,
    )


def needs(picture: Board) -> list[Need]:
    """What a person has to look at: projects first, then runs, newest first."""
    found = [need for project in picture.projects for need in _needs_of(project)]
    day_ago = picture.facts.now - timedelta(days=1)
    for run in picture.runs:
        if run.ended_at is None or run.ended_at < day_ago:
            continue
        url = addresses.of("runs:run", run.pk)
        title = f"{run.project.name} #{run.issue_key}"
        if run.outcome in _BAD:
            what = Outcome(run.outcome).words if run.did_start else "did not start"
            found.append(Need(f"need-run-{run.pk}", "bad", title, what, _reason(run), url))
        if run.warning:
            found.append(
                Need(
                    f"need-tidy-{run.pk}",
                    "warn",
                    title,
                    "was not tidied up completely",
                    run.warning,
                    url,
                )
            )
    return found[:NEEDS]


def _needs_of(project: Project) -> list[Need]:
    url = addresses.of("runs:project", project.pk)
    if project.state == ProjectState.FAILED:
        return [
            Need(
                f"need-project-{project.pk}",
                "bad",
                project.name,
                "could not be cloned",
                project.error,
                url,
            )
        ]
    if project.warning:
        return [
            Need(
                f"need-project-{project.pk}",
                "warn",
                project.name,
                "needs a look",
                project.warning,
                url,
            )
        ]
    return []


def _reason(run: Run) -> str:
    kept = " Worktree and branch are kept." if run.worktree_fate == "kept" else ""
    reason = run.reason.removeprefix("did not start: ").strip().rstrip(".")
    return f"{reason[:1].upper()}{reason[1:]}.{kept}" if reason else kept.strip()
