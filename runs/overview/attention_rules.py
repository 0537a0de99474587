"""What needs a person, and in which order. A pure rule over what the overview has loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum

from runs.accounts import hold_rules
from runs.core.states import Outcome, ProjectState, Trouble
from runs.groups.stall_rules import Fate
from runs.watch import rules as watch_rules
from runs.watch.session import Reason

BAD = (Outcome.DIED, Outcome.TIMED_OUT, Outcome.FAILED, Outcome.REJECTED)
SEEN_FOR = timedelta(days=1)
MANY = 3


class NeedKind(IntEnum):
    """Why something needs a person; the most urgent first."""

    WAITS = 0
    LATE = 1
    HELD = 2
    LIMIT = 3
    CLONE = 4
    PAUSED = 5
    STALLED = 6
    REFUSED = 7
    WATCH = 8
    MONITOR = 9
    WORKFLOW = 10
    GROUP = 11
    RUN = 12
    UNTIDY = 13
    CLOSED = 14
    PULL = 15
    PARKED = 16


@dataclass(frozen=True, slots=True)
class AgentNeeds:
    """An agent whose account cannot be used: why, what the service said, when it is tried again.

    `waiting`: how many runs wait for it.
    """

    id: int
    name: str
    trouble: Trouble
    said: str = ""
    since: str = ""
    until: str = ""
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class LimitNeeds:
    """A limit of this day that is reached: of one project, or of all, whose `id` is 0."""

    id: int
    name: str
    what: str
    numbers: str


@dataclass(frozen=True, slots=True)
class WaitNeeds:
    """A working run whose agent waits for a person: for what, since when, and what it said."""

    id: int
    title: str
    what: str
    since: str = ""
    note: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class WatchNeeds:
    """The newest watch session of a project, which has ended.

    `is_stalled`: Resume goes on. `is_seen`: somebody opened it long enough ago, or dismissed it.
    """

    id: int
    code: int
    reason: str
    is_seen: bool = False
    is_stalled: bool = False


@dataclass(frozen=True, slots=True)
class GroupNeeds:
    """A task group whose checkpoint said to investigate and still does, or whose monitor failed.

    `stalled` names the tasks; `fates` is what comes of them when nobody comes.
    """

    id: int
    name: str
    stalled: tuple[str, ...] = ()
    fates: frozenset[Fate] = frozenset()
    error: str = ""


@dataclass(frozen=True, slots=True)
class WorkflowNeeds:
    """A workflow that goes on when a person says so, and why."""

    id: int
    name: str
    note: str


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
    watch: WatchNeeds | None = None
    groups: Sequence[GroupNeeds] = ()
    workflows: Sequence[WorkflowNeeds] = ()


@dataclass(frozen=True, slots=True)
class PullNeeds:
    """An open pull request, or one that was closed unmerged while its issue stays claimed.

    `url` is where it is reviewed, empty for our own pages.
    """

    project: int
    name: str
    number: int
    title: str
    url: str = ""
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class RunNeeds:
    """A run that has ended.

    `is_seen`: somebody opened it long enough ago, or dismissed it. `is_retried`: a later run of
    the same issue has started. `project`: its id and name.
    """

    id: int
    title: str
    outcome: str
    is_seen: bool = False
    is_retried: bool = False
    did_start: bool = True
    reason: str = ""
    is_kept: bool = False
    warning: str = ""
    project: tuple[int, str] = (0, "")


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that the overview knows."""

    is_late: bool = False
    waits: Sequence[WaitNeeds] = ()
    agents: Sequence[AgentNeeds] = ()
    limits: Sequence[LimitNeeds] = ()
    projects: Sequence[ProjectNeeds] = ()
    pulls: Sequence[PullNeeds] = ()
    runs: Sequence[RunNeeds] = ()


@dataclass(frozen=True, slots=True)
class Alike:
    """What several needs have in common that read the same, and how all of them are told.

    `what` has a place for how many they are; `why` is the reason of each, `outcome` that of runs.
    """

    project: int
    title: str
    what: str
    why: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a person has to look at.

    `about`: ids of what its one action is about; `url`: where that is, when it is elsewhere.
    `trouble`: of which account's trouble it tells. `alike`: None for what is never told with others.
    """

    kind: NeedKind
    id: str
    tone: str
    title: str
    what: str
    why: str
    about: tuple[int, ...] = field(default=())
    url: str = ""
    trouble: Trouble = Trouble.NONE
    alike: Alike | None = None


def is_seen(until: datetime | None, now: datetime) -> bool:
    """Whether something that ended badly needs nobody any more.

    `until` is set when somebody opens or dismisses it; what nobody has seen stays for good.
    """
    return until is not None and until <= now


def needs(picture: Picture) -> list[Need]:
    """Everything that needs a person: what holds up everything first, then by kind.

    Within a kind the order is that of the facts; of one run its outcome comes before its tidying.
    """
    found = [_of_wait(run) for run in picture.waits]
    found += [*_late(picture), *(_of_agent(agent) for agent in picture.agents)]
    found += [_of_limit(limit) for limit in picture.limits]
    for project in picture.projects:
        is_leaving = project.state == ProjectState.REMOVING
        found += _of_leaving(project) if is_leaving else _of_project(project)
    found += [_of_pull(pull) for pull in picture.pulls]
    for run in picture.runs:
        found += _of_run(run)
    return sorted(found, key=lambda need: _PLACES[need.kind])


def together(found: Sequence[Need]) -> list[tuple[Need, ...]]:
    """The same needs in the same order, those that repeat one another as one at the first's place.

    Fewer than three stay apart: two are read as fast as their sum.
    """
    times = Counter((need.kind, need.alike) for need in found)
    rows: dict[object, list[Need]] = {}
    for need in found:
        key = (need.kind, need.alike)
        is_repeated = need.alike is not None and times[key] >= MANY
        rows.setdefault(key if is_repeated else need.id, []).append(need)
    return [tuple(row) for row in rows.values()]


def _of_wait(run: WaitNeeds) -> Need:
    said = f"{run.note.rstrip('.')}. " if run.note else ""
    what, why = f"{run.what} since {run.since}", f"{said}{run.advice} Its budget goes on."
    return Need(NeedKind.WAITS, f"need-wait-{run.id}", "bad", run.title, what, why, (run.id,))


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


def _of_agent(agent: AgentNeeds) -> Need:
    what = f"{hold_rules.words(agent.trouble)} since {agent.since}, tried again at {agent.until}"
    runs = f"{_count(agent.waiting, 'run waits and goes', 'runs wait and go')} on then."
    waits = runs if agent.waiting else "Nothing is started with it until then."
    said = f"{agent.said.rstrip('.')}." if agent.said else ""
    why = " ".join(part for part in (waits, hold_rules.advice(agent.trouble), said) if part)
    ident = f"need-agent-{agent.id}"
    return Need(
        NeedKind.HELD, ident, "warn", agent.name, what, why, (agent.id,), trouble=agent.trouble
    )


def _of_limit(limit: LimitNeeds) -> Need:
    what = f"reached the limit of {limit.what}"
    why = (
        f"{limit.numbers}. Nothing new starts until 00:00 UTC, or until somebody raises the limit; "
        "it goes on by itself then."
    )
    ident, about = f"need-limit-{limit.id}", (limit.id,) if limit.id else ()
    return Need(NeedKind.LIMIT, ident, "warn", limit.name, what, why, about)


def _of_leaving(project: ProjectNeeds) -> Iterator[Need]:
    if project.error:
        why = f"{project.error.rstrip('.')}. It is tried again by itself."
        yield _need(NeedKind.CLONE, project, "bad", "could not be removed yet", why)


def _of_project(project: ProjectNeeds) -> Iterator[Need]:
    if project.state == ProjectState.FAILED:
        yield _need(NeedKind.CLONE, project, "bad", "could not be cloned", project.error)
    if project.is_paused:
        what = f"is paused after {project.streak} failed runs in a row"
        why = "Nothing starts by itself until you reset it. Look at what failed first."
        yield _need(NeedKind.PAUSED, project, "bad", what, why)
    if project.warning and project.state != ProjectState.FAILED:
        yield _need(NeedKind.REFUSED, project, "warn", "needs a look", project.warning)
    if project.watch is not None:
        yield from _of_watch(project, project.watch)
    for group in project.groups:
        yield _of_group(project, group)
    for workflow in project.workflows:
        yield _of_workflow(project, workflow)
    if project.unpushed:
        branches = _count(project.parked, "parked branch", "parked branches")
        why = f"On {branches}. Push or discard what they hold; they are kept until then."
        commits = _count(project.unpushed, "commit", "commits")
        yield _need(NeedKind.PARKED, project, "warn", f"has {commits} that origin does not", why)


def _of_watch(project: ProjectNeeds, watch: WatchNeeds) -> Iterator[Need]:
    if watch.is_stalled:
        why = "Nothing starts by itself until you press Resume. What runs goes on."
        yield _need(NeedKind.STALLED, project, "bad", "is stopped: tracker unreachable", why)
    elif watch.code in watch_rules.FAILED and not watch.is_seen:
        what = f"watch session {watch.id}: {watch.reason} (exit code {watch.code})"
        ident, about = f"need-watch-{project.id}", (project.id, watch.id)
        why = _WATCH_WHY.get(watch.reason, "")
        yield Need(NeedKind.WATCH, ident, "bad", project.name, what, why, about)


def _of_group(project: ProjectNeeds, group: GroupNeeds) -> Need:
    about = (project.id, group.id)
    if not group.stalled:
        what = f"group {group.name}: its monitor failed"
        why = f"{group.error.rstrip('.')}. No result was recorded; nothing of the work was touched."
        ident = f"need-monitor-{group.id}"
        return Need(NeedKind.MONITOR, ident, "bad", project.name, what, why, about)
    what = f"group {group.name}: {_count(len(group.stalled), 'task is', 'tasks are')} stalled"
    fate = next(text for fate, text in _FATES.items() if fate in group.fates)
    why = f"{', '.join(group.stalled)}. {fate}"
    return Need(NeedKind.GROUP, f"need-group-{group.id}", "warn", project.name, what, why, about)


def _of_workflow(project: ProjectNeeds, workflow: WorkflowNeeds) -> Need:
    what = f"workflow {workflow.name} waits for you"
    why = (
        f"{workflow.note.rstrip('.')}. Start that phase again or stop it; waiting uses up no time."
    )
    ident, about = f"need-workflow-{workflow.id}", (project.id, workflow.id)
    return Need(NeedKind.WORKFLOW, ident, "bad", project.name, what, why, about)


def _need(kind: NeedKind, project: ProjectNeeds, tone: str, what: str, why: str) -> Need:
    ident = f"need-{_NAMES[kind]}-{project.id}"
    return Need(kind, ident, tone, project.name, what, why, (project.id,))


def _of_pull(pull: PullNeeds) -> Need:
    ident = f"need-pull-{pull.project}-{pull.number}"
    title = f"{pull.name} #{pull.number}"
    what = "waits for your review"
    about = (pull.project, pull.number)
    if pull.is_closed:
        what, why = "was closed without merging", f"Its issue stays claimed. {pull.title}"
        ident = f"need-closed-{pull.project}-{pull.number}"
        return Need(NeedKind.CLOSED, ident, "warn", title, what, why, about)
    alike = Alike(pull.project, pull.name, "{} pull requests wait for your review")
    return Need(NeedKind.PULL, ident, "good", title, what, pull.title, about, pull.url, alike=alike)


def _of_run(run: RunNeeds) -> Iterator[Need]:
    if run.is_seen:
        return
    if run.outcome in BAD and not run.is_retried:
        what = Outcome(run.outcome).words if run.did_start else "did not start"
        ident = f"need-run-{run.id}"
        alike = Alike(*run.project, f"{{}} runs {_past(run)}", _common(run), run.outcome)
        about = (run.id,)
        yield Need(NeedKind.RUN, ident, "bad", run.title, what, _reason(run), about, alike=alike)
    if run.warning:
        ident, what = f"need-tidy-{run.id}", "was not tidied up completely"
        yield Need(NeedKind.UNTIDY, ident, "warn", run.title, what, run.warning, (run.id,))


def _reason(run: RunNeeds) -> str:
    kept = " Its work is kept." if run.is_kept else ""
    reason = _sentence(run.reason)
    return f"{reason}{kept}" if reason else kept.strip()


def _common(run: RunNeeds) -> str:
    """The part of the reason that runs share which ended alike; what follows tells of one alone."""
    return _sentence(run.reason.partition(";")[0])


def _sentence(reason: str) -> str:
    plain = reason.removeprefix("did not start: ").strip().rstrip(".")
    return f"{plain[:1].upper()}{plain[1:]}." if plain else ""


def _past(run: RunNeeds) -> str:
    if not run.did_start:
        return "did not start"
    if run.outcome == Outcome.REJECTED:
        return "were rejected"
    return Outcome(run.outcome).words


_WATCH_WHY: Mapping[str, str] = {
    Reason.VALIDATION_FAILED: "The merged result fails validation. Nothing was lost; see the "
    "command output.",
    Reason.ISSUES_FAILED: "Look at the runs that failed or could not start. Their work is kept.",
    Reason.POLL_FAILED: "The tracker gave no answer three times in a row. Runs were left as they "
    "were; start another session once it answers.",
}


# Of several tasks that is told which asks most of a person.
_FATES: Mapping[Fate, str] = {
    Fate.ONLY_WARNED: "Nothing is given back until a person does.",
    Fate.FOLLOWS_RUN: "Look at the run that it follows.",
    Fate.GIVEN_BACK: "Given back by itself after a while.",
}


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


_NAMES = {
    NeedKind.CLONE: "project",
    NeedKind.PAUSED: "paused",
    NeedKind.STALLED: "stalled",
    NeedKind.REFUSED: "project",
    NeedKind.PARKED: "parked",
}
# Both kinds about runs share a place, so that runs stay newest first.
_PLACES = {kind: kind for kind in NeedKind} | {NeedKind.UNTIDY: NeedKind.RUN}
