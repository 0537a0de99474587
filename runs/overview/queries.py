"""One query function a page, each with a fixed number of queries whatever the number of rows."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from runs.accounts import held
from runs.agents import pages as agent_pages
from runs.core.database import prepared_with_keys
from runs.core.ports import Lab
from runs.core.states import ProjectState, TrackerKind, WorktreeFate
from runs.dispatch import why
from runs.forges import tracker_card
from runs.forges.tracker_card import Card
from runs.gate_pages import check_words
from runs.groups import card as group_card
from runs.groups.card import GroupCard
from runs.history import pages as history
from runs.history.pages import Past
from runs.manual import rows as manual_rows
from runs.manual.rows import Driven
from runs.models import Notice, Project, Run
from runs.overview import board, digest, outages
from runs.overview.board import Board, ReadyIssue, RunRow
from runs.overview.hiding_rules import Hidden
from runs.overview.outages import Silent
from runs.spending import pages as spending_pages
from runs.watch import card as watch_card
from runs.watch import summaries
from runs.watch.card import WatchCard
from runs.watch.forms import WatchForm
from runs.watch.summaries import Watched
from runs.web import addresses
from trackers.base import PullState
from trackers.builtin.models import PullRequest

ACTIVITY, ENDED = 14, 15
TIMELINE = 200
_SHORT = {
    ProjectState.CLONING: "cloning",
    ProjectState.FAILED: "failed",
    ProjectState.REMOVING: "being removed",
}
_WHY_NOT = {
    ProjectState.CLONING: "The repository is still being cloned.",
    ProjectState.FAILED: "The repository could not be cloned.",
    ProjectState.REMOVING: "The project is being removed.",
}
_WORKTREES = {
    "removed": "removed, it was clean",
    "gone": "not there any more: somebody moved or removed it",
    "kept": "kept",
}


@dataclass(frozen=True, slots=True)
class StartChoice:
    """One project in the start menu."""

    project: Project
    ready: int
    refusal: str
    hint: int | None = None

    @property
    def url(self) -> str:
        return addresses.of("runs:start", self.project.pk)

    @property
    def short(self) -> str:
        return _SHORT.get(ProjectState(self.project.state), "cannot start")


@dataclass(frozen=True, slots=True)
class Overview:
    board: Board
    stats: digest.Stats
    needs: digest.Needs
    running: Sequence[RunRow]
    next: Sequence[ReadyIssue]
    notices: Sequence[Notice]
    projects: Sequence[StartChoice]
    watching: Sequence[Watched]
    silent: Silent | None = None

    @property
    def held(self) -> int:
        """How many runs wait for their agent's account."""
        return sum(row.run.is_held for row in self.running)

    @property
    def live(self) -> int:
        return len(self.running) - self.held


@dataclass(frozen=True, slots=True)
class NeedsPage:
    board: Board
    needs: digest.Needs


@dataclass(frozen=True, slots=True)
class ProjectPage:
    board: Board
    project: Project
    ready: Sequence[ReadyIssue]
    running: Sequence[RunRow]
    recent: Sequence[Past]
    notices: Sequence[Notice]
    refusal: str
    fetch_command: str
    sessions: Sequence[Driven]
    card: Card
    watch: WatchCard | None
    watch_form: WatchForm
    groups: Sequence[GroupCard]
    hint: int | None = None
    spending: spending_pages.Lines | None = None

    @property
    def free(self) -> int:
        """How many of the ready issues can start, as far as stored facts say."""
        return self.board.free_count(self.project)

    @property
    def total(self) -> int:
        """How many ready issues there are, also those whose titles are not kept."""
        return max(self.project.queue_count or 0, len(self.ready))

    @property
    def last_failure(self) -> Run | None:
        """What failed last, when it is among the runs that are shown."""
        shown = (row.run for row in self.recent)
        return next((run for run in shown if run.pk == self.project.last_failure_id), None)

    @property
    def hold(self) -> held.Hold | None:
        """Why nothing starts with this project's agent; None while it is not held."""
        return held.of_project(self.board, self.project)

    @property
    def held(self) -> int:
        """How many runs wait for their agent's account."""
        return sum(row.run.is_held for row in self.running)

    @property
    def live(self) -> int:
        return len(self.running) - self.held

    @property
    def to_stop(self) -> int:
        """What Stop all would end; 0 where each session has a Stop of its own, which is enough.

        A fixer has none: it is offered for one alone.
        """
        fixers = self.watch.fixers if self.watch is not None else 0
        own = len(self.running) + sum(one.row.is_open for one in self.sessions)
        return own + fixers if fixers or own > 1 else 0

    @property
    def budget(self) -> timedelta:
        return self.project.budget(self.board.facts.settings)

    @property
    def clone_percent(self) -> int | None:
        """How far git says it is; None while it does not say."""
        found = re.search(r"(\d{1,3})%", self.project.clone_progress)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class RunPage:
    board: Board
    run: Run
    row: RunRow
    pull_state: str = ""

    @property
    def worktree(self) -> str:
        """What there is of its worktree."""
        run = self.run
        if run.worktree_fate == WorktreeFate.NONE:
            return "None (removed again, empty)" if run.claimed_at else "None (never created)"
        return _WORKTREES.get(run.worktree_fate, "being settled")

    @property
    def is_failed_start(self) -> bool:
        return bool(self.run.outcome) and not self.run.did_start

    @property
    def signal_name(self) -> str:
        """The name of the signal that ended the program, if there was one."""
        try:
            return signal.Signals(self.run.exit_signal or 0).name
        except ValueError:
            return ""


@dataclass(frozen=True, slots=True)
class Frame:
    """A page without live parts of its own."""

    board: Board


def frame(lab: Lab) -> Frame:
    """The frame of a page. Four queries."""
    return Frame(board.load(lab))


def frame_of_project(lab: Lab, project_id: int) -> Frame | None:
    """The frame of a page below a project; None when there is no such project. Four queries."""
    picture = board.load(lab)
    return Frame(picture) if project_id in picture.by_id else None


def overview(lab: Lab, marks: Collection[Hidden] = ()) -> Overview:
    """Everything the overview shows to whoever has hidden this of what needs them. Five queries.

    Two more while a task group may need somebody, one more while a workflow is held.
    """
    picture = board.load(lab, recent=board.RECENT, with_waiting=True)
    notices = Notice.objects.filter(is_news=True)[:ACTIVITY]
    counts = why.of(lab, picture.projects)
    return Overview(
        picture,
        digest.stats(picture),
        digest.needs(picture, marks),
        [picture.row(run) for run in picture.active],
        picture.free,
        [_join(picture, notice) for notice in notices],
        [
            StartChoice(one, picture.free_count(one), why_not(picture, one), counts.get(one.pk))
            for one in picture.projects
        ],
        summaries.lines(picture.projects),
        outages.silent(picture.projects, picture.facts.now),
    )


def needs(lab: Lab, marks: Collection[Hidden] = ()) -> NeedsPage:
    """Everything that needs a person, by the queries of the overview."""
    picture = board.load(lab, recent=board.RECENT, with_waiting=True)
    return NeedsPage(picture, digest.needs(picture, marks, limit=None))


def project(lab: Lab, project_id: int) -> ProjectPage | None:
    """Everything one project's page shows; None when there is no such project.

    Nine queries, and three more for one on a forge.
    """
    picture = board.load(lab)
    found = picture.by_id.get(project_id)
    if found is None:
        return None
    running = [picture.row(run) for run in picture.active_of(found)]
    recent = _ended_of().rows(keys=[found.pk])
    notices = _news_of().rows(keys=[found.pk])
    return ProjectPage(
        picture,
        found,
        picture.ready_of(found),
        running,
        [history.row(_with(found, run), picture.facts.now) for run in recent],
        [_join(picture, notice) for notice in notices],
        why_not(picture, found),
        fetch_command(lab, found),
        manual_rows.of(lab, found),
        tracker_card.of(lab, found, picture.facts.settings),
        watch_card.of(found, picture.facts.settings, running),
        WatchForm(),
        group_card.open_of(found),
        why.of(lab, [found]).get(found.pk),
        spending_pages.of_project(picture, found),
    )


@prepared_with_keys(1)
def _ended_of(_now: datetime, project: int) -> QuerySet[Run]:
    return Run.objects.filter(project=project).exclude(outcome="").light()[:ENDED]


@prepared_with_keys(1)
def _news_of(_now: datetime, project: int) -> QuerySet[Notice]:
    return Notice.objects.filter(project=project, is_news=True)[:ACTIVITY]


def timeline(run_id: int, before: int | None = None) -> dict[str, Any]:
    """A page of a run's timeline, newest first, and where the next one begins. One query."""
    rows = Notice.objects.filter(run_id=run_id)
    found = list((rows.filter(pk__lt=before) if before else rows)[: TIMELINE + 1])
    older = found[TIMELINE - 1].pk if len(found) > TIMELINE else None
    return {"notices": found[:TIMELINE], "older": older}


def run(lab: Lab, run_id: int) -> RunPage | None:
    """What every tab of a run's page shows; None when there is no such run. Five queries.

    One more for the state of its pull request on the built-in tracker.
    """
    picture = board.load(lab)
    rows = Run.objects.filter(pk=run_id).annotate(gate_at=check_words.gate_at())
    found = held.with_profile(rows).first()
    if found is None or found.project_id not in picture.by_id:
        return None
    found.project = picture.by_id[found.project_id]
    return RunPage(picture, found, picture.row(found), _pull_state(found))


def _pull_state(run: Run) -> str:
    """What became of its pull request: as it is here, or as its tracker told it last."""
    project = run.project
    if run.pull_number is None:
        return ""
    if project.tracker == TrackerKind.BUILTIN:
        pulls = PullRequest.objects.filter(root_id=int(project.tracker_root))
        return pulls.filter(number=run.pull_number).values_list("state", flat=True).first() or ""
    is_listed = any(number == run.pull_number for number, *_ in project.pulls_seen)
    if run.pull_state == PullState.OPEN and project.pulls_seen_at and not is_listed:
        return "no longer open"
    return run.pull_state


def fetch_command(lab: Lab, project: Project) -> str:
    """What brings merges into the operator's folder; only for a project whose origin is ours."""
    if not project.is_hosted or project.state != ProjectState.READY:
        return ""
    origin = str(project.origin(lab.paths))
    words = ["git", "-C", project.source, "pull", "--ff-only", origin, project.default_branch]
    return shlex.join(words)


def why_not(picture: Board, project: Project) -> str:
    """Why "Start AFK run" is disabled, as far as stored facts say; empty when it may be pressed."""
    cap = picture.facts.settings.session_cap
    if project.state in _WHY_NOT:
        return _WHY_NOT[ProjectState(project.state)]
    if not project.tracker:
        return "This project has no tracker that labsite can read."
    missing = agent_pages.missing(picture, project)
    if missing:
        return f"{missing} is not installed on this machine."
    if len(picture.occupying) + picture.facts.driven >= cap:
        return f"All {cap} slots are taken. A slot is free again when a run ends or is stopped."
    return ""


def _join(picture: Board, notice: Notice) -> Notice:
    if notice.project_id is not None and notice.project_id in picture.by_id:
        notice.project = picture.by_id[notice.project_id]
    return notice


def _with(project: Project, run: Run) -> Run:
    run.project = project
    return run
