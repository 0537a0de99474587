"""What a launch has to know of projects, asked fresh: queues, blockers, claims, who works already.

The launch pass and "Why is this not running?" both ask here and decide by the same rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet, Value

from runs.accounts import holds
from runs.agents import checks
from runs.core.database import prepared
from runs.core.ports import Lab, SeamError
from runs.core.states import Outcome, RunKind, TrackerKind
from runs.dispatch import blockers, provable, scope
from runs.dispatch.blocking import Block
from runs.dispatch.eligibility import NOTHING, Candidate, Queue, Want
from runs.forges import fan_out
from runs.forges.fan_out import Silence
from runs.hosts import rules as host_rules
from runs.kept import counts
from runs.lifecycle.querysets import TO_TELL
from runs.models import Parked, Project, Run, Settings, StartWait, Validation, WatchSession
from runs.projects import start_waits
from runs.spending import gathering
from trackers.base import Issue, PullState
from trackers.builtin.models import PullRequest
from trackers.keys import why_unfit

CLAIMS_SECONDS = 10.0
# The claimed keys with their branches, those of them that only a worktree folder claims, and why git did not say.
Claims = tuple[Mapping[str, str] | None, frozenset[str], str]
_NO_CLAIMS: Claims = ({}, frozenset(), "")
UNASKED = Silence("")
_KEPT, _AWAY = "kept", "away"
PROVEN = (Outcome.SUCCEEDED, Outcome.NO_CHANGE, Outcome.OBSOLETE)


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
    heard = _ready(lab, projects)
    answers = _by_priority(heard, projects)
    active, automatic, elsewhere = _active(lab, projects)
    claimed = _all_claims(lab, projects, answers, silent, elsewhere)
    spending = gathering.spending(settings, projects, lab.now())
    wants, waiting = scope.of(projects), start_waits.of(projects)
    lines: list[blockers.Line] = []
    for project in projects:
        taken = active[project.pk] | (claimed[project.pk][0] or {}).keys()
        untaken = [one for one in _listed(answers, project) if one.key not in taken]
        late = _late(waiting.get(project.pk, {}), lab.now()) if is_auto else frozenset()
        want = wants[project.pk] if is_auto else NOTHING
        first, after = _in_turn(project, untaken, late, want)
        keys = [key for key in (*first, *after) if not wanted or key == wanted]
        enough = 0 if of_all else max(1, project.parallel_runs - automatic[project.pk])
        lines.append(blockers.Line((project.tracker, project.tracker_root), keys, enough))
    waits, lacks = blockers.ask(lab, heard, lines), provable.of(projects)
    pulls = _open_pulls(projects, claimed)
    queues = []
    for project in projects:
        issues = answers[project.pk]
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
                        branch,
                        pulls.get((project.pk, branch), (None, "")),
                        waits.block_of(root, one.key),
                        waiting.get(project.pk, {}).get(one.key),
                        lab.now(),
                    )
                    for one in ready
                    for branch in [(claims or {}).get(one.key) or project.branch_for(one.key)]
                ],
                claims=None if claims is None else claims.keys(),
                left=left,
                active=active[project.pk],
                wanted=wanted,
                tracker_error=silence.text,
                asked_again_at=silence.until,
                tracker_passes=silence.passes,
                was_not_asked=silence.is_repeat,
                git_error=git_error,
                project=project.pk,
                state=project.state,
                has_agent=agent is not None,
                agent=agent.name if agent is not None else "",
                unfit=checks.obstacle(lab, agent) if agent is not None else None,
                agent_hold=holds.words(agent, lab.now()),
                over_limit=spending.hold(project),
                unprovable=lacks[project.pk],
                trusted=project.trusted_names,
                want=wants[project.pk],
                streak=project.streak,
                waits=project.retry_at is not None and lab.now() < project.retry_at,
                auto_alive=automatic[project.pk],
                parallel=project.parallel_runs,
                keys=project.keys,
                job=project.job,
                weight=project.weight,
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


def _by_priority(
    heard: Mapping[tuple[str, str, str], Sequence[Issue] | Silence], projects: Sequence[Project]
) -> dict[int, Sequence[Issue] | Silence]:
    """The same by project, its urgent issues first; else in the order of the tracker."""
    found: dict[int, Sequence[Issue] | Silence] = {}
    for project in projects:
        issues = heard.get(_place(project), UNASKED)
        if not isinstance(issues, Silence):
            order = project.priorities
            issues = sorted(issues, key=lambda one: host_rules.rank(one.labels, order))
        found[project.pk] = issues
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


def _listed(answers: Mapping[int, Sequence[Issue] | Silence], project: Project) -> Sequence[Issue]:
    """The ready issues of a project; none where its tracker did not answer."""
    issues = answers[project.pk]
    return () if isinstance(issues, Silence) else issues


def _all_claims(
    lab: Lab,
    projects: Sequence[Project],
    answers: Mapping[int, Sequence[Issue] | Silence],
    silent: dict[int, str],
    elsewhere: Mapping[int, Mapping[str, str]],
) -> dict[int, Claims]:
    """The claims of each project that has a ready issue; those that come too late are asked later."""
    began = lab.steady().seconds
    found: dict[int, Claims] = {}
    for project in projects:
        if lab.steady().seconds - began > CLAIMS_SECONDS:
            silent.setdefault(project.pk, "others took too long; it is asked again")
        has_any = bool(_listed(answers, project))
        here, left, why = _claims(lab, project, silent) if has_any else _NO_CLAIMS
        more = elsewhere.get(project.pk, {})
        found[project.pk] = (None if here is None else {**more, **here}, left, why)
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
        begins = {prefix for one in some for prefix in one.claim_prefixes}
        has_one = reduce(or_, (Q(head__startswith=prefix) for prefix in begins))
        rows = rows.filter(has_one).order_by("number")
        for root, head, number in rows.values_list("root", "head", "number"):
            found[roots[root], head] = number, ""
    return found


def _candidate(
    issue: Issue,
    branch: str,
    pull: tuple[int | None, str],
    block: Block,
    wait: StartWait | None,
    now: datetime,
) -> Candidate:
    late = wait.retry_at if wait is not None and wait.retry_at and wait.retry_at > now else None
    stopped = wait.stopped_by if wait is not None else ""
    return Candidate(
        *(issue.key, issue.title, issue.author, issue.ready_by, block, issue.url, late, stopped),
        *pull,
        branch,
    )


def _claims(lab: Lab, project: Project, silent: dict[int, str]) -> Claims:
    if project.pk in silent:
        return None, frozenset(), silent[project.pk]
    if _is_cold(lab, project):
        return _NO_CLAIMS
    try:
        branches, left = counts.claims(lab, project)
    except SeamError as error:
        silent[project.pk] = str(error)
        return None, frozenset(), str(error)
    return {**{key: project.branch_for(key) for key in left}, **branches}, left, ""


def _marked(rows: QuerySet[Any], key: str, mark: str) -> QuerySet[Any, Any]:
    """Rows for the union of `_active`: project, what claims the issue, and which arm it is."""
    told = rows.order_by().annotate(arm=Value(mark), nothing=Value(""))
    found: QuerySet[Any, Any] = told.values_list("project_id", key, "arm", "nothing")
    return found


def _is_cold(lab: Lab, project: Project) -> bool:
    """Whether another host has its clone and this one none yet, so that git here knows no claim."""
    is_home = project.home in ("", lab.host)
    return not is_home and not project.repo(lab.paths).is_dir()


def _active(
    lab: Lab, projects: Sequence[Project]
) -> tuple[dict[int, set[str]], dict[int, int], dict[int, dict[str, str]]]:
    """The keys that runs hold, the number of active automatic ones, and the keys that work kept on
    other hosts claims, with their branch, by project. One query.

    A run that its gates accepted holds its issue until that is closed, even without its branch. One
    of another host that is not settled may keep its branch.
    """
    keys: dict[int, set[str]] = defaultdict(set)
    automatic: dict[int, int] = defaultdict(int)
    elsewhere: dict[int, dict[str, str]] = defaultdict(dict)
    by_pk = {project.pk: project for project in projects}
    for project_id, key, kind, outcome in _held(lab.host).rows():
        if kind == _KEPT:
            claimed = by_pk[project_id].claimed_key(key) if project_id in by_pk else None
            elsewhere[project_id] |= {claimed: key} if claimed else {}
        elif kind == _AWAY:
            elsewhere[project_id].setdefault(key, "")
        else:
            keys[project_id].add(key)
            automatic[project_id] += kind == RunKind.AUTO and not outcome
    return keys, automatic, elsewhere


@prepared
def _held(_now: datetime, host: str) -> QuerySet[Run, Any]:
    names = ("project_id", "issue_key", "kind", "outcome")
    # Each part by its own index: as one condition, every run that ever was would be read.
    accepted = Run.objects.filter(outcome__in=PROVEN, attempts__gte=1, closed_at=None)
    validating = Validation.objects.running()
    parts = (
        accepted.filter(TO_TELL, close_asked_at__isnull=False),
        accepted.filter(close_asked_at=None, watch__in=WatchSession.objects.filter(ended_at=None)),
        accepted.filter(close_asked_at=None, pk__in=validating.values("run")),
        accepted.filter(close_asked_at=None, watch__in=validating.values("session")),
    )
    rows = Run.objects.active().order_by().values_list(*names)
    away = Run.objects.exclude(outcome="").filter(settled_at=None).exclude(host=host)
    parked = Parked.objects.exclude(host=host)
    arms = [one.order_by().values_list(*names) for one in parts]
    arms += [_marked(away, "issue_key", _AWAY), _marked(parked, "branch", _KEPT)]
    return rows.union(*arms, all=True)
