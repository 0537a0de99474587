"""What a launch has to know of projects, asked fresh: queues, blockers, claims, who works already.

The launch pass and "Why is this not running?" both ask here and decide by the same rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from runs.accounts import holds
from runs.agents import checks
from runs.core import naming
from runs.core.ports import Lab, SeamError
from runs.core.states import RunKind, TrackerKind
from runs.dispatch import blockers, scope
from runs.dispatch.blocking import Block
from runs.dispatch.eligibility import NOTHING, Candidate, Queue, Want
from runs.forges import fan_out
from runs.forges.fan_out import Silence
from runs.kept import counts
from runs.models import Project, Run, Settings, StartWait
from runs.projects import start_waits
from runs.spending import gathering
from trackers.base import Issue, PullState
from trackers.builtin.models import PullRequest
from trackers.keys import why_unfit

CLAIMS_SECONDS = 10.0
# The claimed keys, those of them that only a worktree folder claims, and why git did not say.
Claims = tuple[frozenset[str] | None, frozenset[str], str]
_NO_CLAIMS: Claims = (frozenset(), frozenset(), "")
UNASKED = Silence("")


def gather(
    lab: Lab,
    settings: Settings,
    projects: Sequence[Project],
    wanted: str = "",
    silent: dict[int, str] | None = None,
    *,
    of_all: bool = False,
    is_auto: bool = False,
) -> list[Queue]:
    """One queue a project, with a number of queries that does not grow with them.

    Each tracker is asked once for all its projects, git once for each that has a ready issue.
    Whatever did not answer is None in the facts. A repository that did not answer is
    `silent` for the rest of a pass: ten requests for one that hangs must not hold it up ten times.

    What issues wait for is asked of the one that is `wanted`, else of the first ones until as many
    as may start wait for nothing; `of_all`: as far as can be done in one go. `is_auto`: what only a
    person may start now has its turn after the others.
    """
    silent = {} if silent is None else silent
    answers = _ready(lab, projects)
    active, automatic = _active()
    claimed = _all_claims(lab, projects, answers, silent)
    spending = gathering.spending(settings, projects, lab.now())
    wants, waiting = scope.of(projects), start_waits.of(projects)
    lines: list[blockers.Line] = []
    for project in projects:
        taken = active[project.pk] | (claimed[project.pk][0] or frozenset())
        untaken = [one for one in _listed(answers, project) if one.key not in taken]
        late = _late(waiting.get(project.pk, {}), lab.now()) if is_auto else frozenset()
        want = wants[project.pk] if is_auto else NOTHING
        first, after = _in_turn(project, untaken, late, want)
        keys = [key for key in (*first, *after) if not wanted or key == wanted]
        enough = 0 if of_all else max(1, project.parallel_runs - automatic[project.pk])
        lines.append(blockers.Line((project.tracker, project.tracker_root), keys, enough))
    waits = blockers.ask(lab, answers, lines)
    pulls = _open_pulls(projects, claimed)
    queues = []
    for project in projects:
        issues = answers.get(_place(project), UNASKED)
        ready, silence = (None, issues) if isinstance(issues, Silence) else (issues, UNASKED)
        claims, left, git_error = claimed[project.pk]
        root = (project.tracker, project.tracker_root)
        agent = project.agent or settings.agent
        queues.append(
            Queue(
                has_tracker=bool(project.tracker) and lab.tracker_for(project.tracker) is not None,
                ready=None
                if ready is None
                else [
                    _candidate(
                        one,
                        pulls.get((project.pk, naming.branch_for(one.key)), (None, "")),
                        waits.block_of(root, one.key),
                        waiting.get(project.pk, {}).get(one.key),
                        lab.now(),
                    )
                    for one in ready
                ],
                claims=claims,
                left=left,
                active=active[project.pk],
                wanted=wanted,
                tracker_error=silence.text,
                asked_again_at=silence.until,
                was_not_asked=silence.is_repeat,
                git_error=git_error,
                project=project.pk,
                state=project.state,
                has_agent=agent is not None,
                agent=agent.name if agent is not None else "",
                unfit=checks.obstacle(lab, agent) if agent is not None else None,
                agent_hold=holds.words(agent, lab.now()),
                over_limit=spending.hold(project),
                trusted=project.trusted_names,
                want=wants[project.pk],
                streak=project.streak,
                waits=project.retry_at is not None and lab.now() < project.retry_at,
                auto_alive=automatic[project.pk],
                parallel=project.parallel_runs,
                keys=project.keys,
            )
        )
    return queues


def _ready(
    lab: Lab, projects: Sequence[Project]
) -> dict[tuple[str, str, str], Sequence[Issue] | Silence]:
    """The ready issues by kind, root and label; a Silence where the tracker did not answer.

    Projects that share a root under different labels are asked for one label at a time.
    """
    asked = {(p.tracker, p.tracker_root, p.ready_label) for p in projects if p.tracker}
    found: dict[tuple[str, str, str], Sequence[Issue] | Silence] = {}
    while asked:
        labels = {(kind, root): label for kind, root, label in sorted(asked)}
        answers = fan_out.ask_roots(lab, labels, lambda tracker, some: tracker.queues(some))
        found |= {(*root, labels[root]): answer for root, answer in answers.items()}
        asked -= {(*root, label) for root, label in labels.items()}
    return found


def _late(waiting: Mapping[str, StartWait], now: datetime) -> frozenset[str]:
    """The issues that only a person starts now, after their last start."""
    return frozenset(
        key
        for key, wait in waiting.items()
        if wait.stopped_by or (wait.retry_at is not None and wait.retry_at > now)
    )


def _in_turn(
    project: Project, ready: Sequence[Issue], late: Collection[str], want: Want
) -> tuple[list[str], list[str]]:
    """The keys of those that could start if they wait for nothing, and of the others."""
    first: list[str] = []
    after: list[str] = []
    for one in ready:
        names = {name.casefold() for name in (one.author, one.ready_by) if name}
        may = not project.trusted_names or bool(names & set(project.trusted_names))
        may = may and one.key not in late and want.includes(one.key)
        (first if may and not why_unfit(one.key, project.keys) else after).append(one.key)
    return first, after


def _place(project: Project) -> tuple[str, str, str]:
    return project.tracker, project.tracker_root, project.ready_label


def _listed(
    answers: Mapping[tuple[str, str, str], Sequence[Issue] | Silence], project: Project
) -> Sequence[Issue]:
    """The ready issues of a project; none where its tracker did not answer."""
    issues = answers.get(_place(project), UNASKED)
    return () if isinstance(issues, Silence) else issues


def _all_claims(
    lab: Lab,
    projects: Sequence[Project],
    answers: Mapping[tuple[str, str, str], Sequence[Issue] | Silence],
    silent: dict[int, str],
) -> dict[int, Claims]:
    """The claims of each project that has a ready issue; those that come too late are asked later."""
    began = lab.steady().seconds
    found: dict[int, Claims] = {}
    for project in projects:
        if lab.steady().seconds - began > CLAIMS_SECONDS:
            silent.setdefault(project.pk, "others took too long; it is asked again")
        has_any = bool(_listed(answers, project))
        found[project.pk] = _claims(lab, project, silent) if has_any else _NO_CLAIMS
    return found


def _open_pulls(
    projects: Sequence[Project], claimed: Mapping[int, Claims]
) -> Mapping[tuple[int, str], tuple[int, str]]:
    """Number and address of the open pull requests of claimed branches, as heard last.

    One query where labsite keeps the pull requests itself; none for what forges told.
    """
    some = [project for project in projects if claimed[project.pk][0]]
    found = {
        (project.pk, str(head)): (int(number), str(url))
        for project in some
        for number, head, _, url in reversed(project.pulls_seen)
    }
    roots = {
        int(one.tracker_root): one.pk
        for one in some
        if one.tracker == TrackerKind.BUILTIN and one.tracker_root.isdigit()
    }
    if roots:
        rows = PullRequest.objects.filter(state=PullState.OPEN, root__in=roots)
        rows = rows.filter(head__startswith=naming.BRANCH_PREFIX).order_by("number")
        for root, head, number in rows.values_list("root", "head", "number"):
            found[roots[root], head] = number, ""
    return found


def _candidate(
    issue: Issue, pull: tuple[int | None, str], block: Block, wait: StartWait | None, now: datetime
) -> Candidate:
    late = wait.retry_at if wait is not None and wait.retry_at and wait.retry_at > now else None
    stopped = wait.stopped_by if wait is not None else ""
    return Candidate(
        issue.key, issue.title, issue.author, issue.ready_by, block, issue.url, late, stopped, *pull
    )


def _claims(lab: Lab, project: Project, silent: dict[int, str]) -> Claims:
    if project.pk in silent:
        return None, frozenset(), silent[project.pk]
    try:
        branches, left = counts.claims(lab, project)
    except SeamError as error:
        silent[project.pk] = str(error)
        return None, frozenset(), str(error)
    return branches | left, left, ""


def _active() -> tuple[dict[int, set[str]], dict[int, int]]:
    """The keys that active runs hold, and the number of automatic ones, by project. One query."""
    keys: dict[int, set[str]] = defaultdict(set)
    automatic: dict[int, int] = defaultdict(int)
    rows = Run.objects.active().values_list("project_id", "issue_key", "kind")
    for project_id, key, kind in rows:
        keys[project_id].add(key)
        automatic[project_id] += kind == RunKind.AUTO
    return keys, automatic
