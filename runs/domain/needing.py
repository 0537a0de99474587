"""What needs a person, and in which order. A pure rule over what the overview has loaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum

from runs.domain.states import Outcome, ProjectState

BAD = (Outcome.DIED, Outcome.TIMED_OUT, Outcome.FAILED, Outcome.REJECTED)
TOLD_FOR = timedelta(days=1)


class NeedKind(IntEnum):
    """Why something needs a person; the most urgent first."""

    LATE = 0
    CLONE = 1
    PAUSED = 2
    REFUSED = 3
    PULL = 4
    RUN = 5
    UNTIDY = 6
    PARKED = 7


@dataclass(frozen=True, slots=True)
class ProjectNeeds:
    """What of a project may need somebody. `unpushed` and `parked` are as last counted."""

    id: int
    name: str
    state: str = ProjectState.READY
    error: str = ""
    warning: str = ""
    is_paused: bool = False
    streak: int = 0
    unpushed: int = 0
    parked: int = 0


@dataclass(frozen=True, slots=True)
class PullNeeds:
    """An open pull request."""

    project: int
    name: str
    number: int
    title: str


@dataclass(frozen=True, slots=True)
class RunNeeds:
    """A run that has ended, and how long ago."""

    id: int
    title: str
    outcome: str
    ago: timedelta
    did_start: bool = True
    reason: str = ""
    is_kept: bool = False
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that the overview knows."""

    is_late: bool = False
    projects: Sequence[ProjectNeeds] = ()
    pulls: Sequence[PullNeeds] = ()
    runs: Sequence[RunNeeds] = ()


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a person has to look at. `about`: ids of what its one action is about."""

    kind: NeedKind
    id: str
    tone: str
    title: str
    what: str
    why: str
    about: tuple[int, ...] = field(default=())


def needs(picture: Picture) -> list[Need]:
    """Everything that needs a person: what holds up everything first, then by kind.

    Within a kind the order is that of the facts; of one run its outcome comes before its tidying.
    """
    found = [*_late(picture)]
    for project in picture.projects:
        found += _of_project(project)
    found += [_of_pull(pull) for pull in picture.pulls]
    for run in picture.runs:
        found += _of_run(run)
    return sorted(found, key=lambda need: _PLACES[need.kind])


def _late(picture: Picture) -> Iterator[Need]:
    if picture.is_late:
        yield Need(
            NeedKind.LATE,
            "need-tick",
            "bad",
            "The worker",
            "is late",
            "Nothing is started and no end is noticed until it looks again; agents go on. "
            "./lab doctor says what is wrong.",
        )


def _of_project(project: ProjectNeeds) -> Iterator[Need]:
    if project.state == ProjectState.FAILED:
        yield _need(NeedKind.CLONE, project, "bad", "could not be cloned", project.error)
    if project.is_paused:
        what = f"is paused after {project.streak} failed runs in a row"
        why = "Nothing starts by itself until you reset it. Look at what failed first."
        yield _need(NeedKind.PAUSED, project, "bad", what, why)
    if project.warning and project.state != ProjectState.FAILED:
        yield _need(NeedKind.REFUSED, project, "warn", "needs a look", project.warning)
    if project.unpushed:
        branches = _count(project.parked, "parked branch", "parked branches")
        why = f"On {branches}. Push or discard what they hold; they are kept until then."
        commits = _count(project.unpushed, "commit", "commits")
        yield _need(NeedKind.PARKED, project, "warn", f"has {commits} that origin does not", why)


def _need(kind: NeedKind, project: ProjectNeeds, tone: str, what: str, why: str) -> Need:
    ident = f"need-{_NAMES[kind]}-{project.id}"
    return Need(kind, ident, tone, project.name, what, why, (project.id,))


def _of_pull(pull: PullNeeds) -> Need:
    ident = f"need-pull-{pull.project}-{pull.number}"
    title = f"{pull.name} #{pull.number}"
    what = "waits for your review"
    return Need(NeedKind.PULL, ident, "good", title, what, pull.title, (pull.project, pull.number))


def _of_run(run: RunNeeds) -> Iterator[Need]:
    if run.ago > TOLD_FOR:
        return
    if run.outcome in BAD:
        what = Outcome(run.outcome).words if run.did_start else "did not start"
        ident = f"need-run-{run.id}"
        yield Need(NeedKind.RUN, ident, "bad", run.title, what, _reason(run), (run.id,))
    if run.warning:
        ident, what = f"need-tidy-{run.id}", "was not tidied up completely"
        yield Need(NeedKind.UNTIDY, ident, "warn", run.title, what, run.warning, (run.id,))


def _reason(run: RunNeeds) -> str:
    kept = " Worktree and branch are kept." if run.is_kept else ""
    reason = run.reason.removeprefix("did not start: ").strip().rstrip(".")
    return f"{reason[:1].upper()}{reason[1:]}.{kept}" if reason else kept.strip()


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


_NAMES = {
    NeedKind.CLONE: "project",
    NeedKind.PAUSED: "paused",
    NeedKind.REFUSED: "project",
    NeedKind.PARKED: "parked",
}
# Both kinds about runs share a place, so that runs stay newest first.
_PLACES = {kind: kind for kind in NeedKind} | {NeedKind.UNTIDY: NeedKind.RUN}
