"""What a launch has to know of projects, asked fresh: queues, blockers, claims, who works already.

The launch pass and "Why is this not running?" both ask here and decide by the same rule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from runs.domain import blocking
from runs.domain.blocking import Block
from runs.domain.ports import Lab, SeamError
from runs.domain.states import RunKind
from runs.domain.waiting import Candidate, Queue, Want
from runs.models import Project, Run, Settings
from runs.work import asking
from trackers.base import Issue

CLAIMS_SECONDS = 10.0
BLOCKER_ROUNDS = 8

Root = tuple[str, str]
Waits = dict[Root, dict[str, tuple[str, ...]]]


def want_of(project: Project) -> Want:
    """What a project wants started by itself. The only place that knows what stands behind it."""
    return Want(is_on=project.is_auto)


def gather(
    lab: Lab,
    settings: Settings,
    projects: Sequence[Project],
    wanted: str = "",
    silent: dict[int, str] | None = None,
) -> list[Queue]:
    """One queue a project, with a number of queries that does not grow with them.

    Each tracker is asked once for all its projects, git once for each that has a ready issue.
    Whatever did not answer is None in the facts (LAB-87). A repository that did not answer is
    `silent` for the rest of a pass: ten requests for one that hangs must not hold it up ten times.
    """
    silent = {} if silent is None else silent
    answers = _ready(lab, projects)
    waits, unknown = _waits(lab, answers)
    active, automatic = _active()
    began = lab.steady().seconds
    queues = []
    for project in projects:
        issues = answers.get((project.tracker, project.tracker_root, project.ready_label), "")
        ready, tracker_error = (None, issues) if isinstance(issues, str) else (issues, "")
        if lab.steady().seconds - began > CLAIMS_SECONDS:
            silent.setdefault(project.pk, "others took too long; it is asked again")
        claims, git_error = _claims(lab, project, silent) if ready else (frozenset(), "")
        root = (project.tracker, project.tracker_root)
        agent = project.agent or settings.agent
        queues.append(
            Queue(
                has_tracker=bool(project.tracker) and lab.tracker_for(project.tracker) is not None,
                ready=None
                if ready is None
                else [_candidate(one, waits[root], root in unknown) for one in ready],
                claims=claims,
                active=active[project.pk],
                wanted=wanted,
                tracker_error=tracker_error,
                git_error=git_error,
                project=project.pk,
                state=project.state,
                has_agent=agent is not None,
                agent=agent.name if agent is not None else "",
                trusted=project.trusted_names,
                want=want_of(project),
                streak=project.streak,
                waits=project.retry_at is not None and lab.now() < project.retry_at,
                auto_alive=automatic[project.pk],
                parallel=project.parallel_runs,
            )
        )
    return queues


def _ready(
    lab: Lab, projects: Sequence[Project]
) -> dict[tuple[str, str, str], Sequence[Issue] | str]:
    """The ready issues by kind, root and label; a text where the tracker did not answer.

    Projects that share a root under different labels are asked for one label at a time.
    """
    asked = {(p.tracker, p.tracker_root, p.ready_label) for p in projects if p.tracker}
    found: dict[tuple[str, str, str], Sequence[Issue] | str] = {}
    while asked:
        labels = {(kind, root): label for kind, root, label in sorted(asked)}
        answers = asking.ask_roots(lab, labels, lambda tracker, some: tracker.queues(some))
        found |= {(*root, labels[root]): answer for root, answer in answers.items()}
        asked -= {(*root, label) for root, label in labels.items()}
    return found


def _waits(
    lab: Lab, answers: Mapping[tuple[str, str, str], Sequence[Issue] | str]
) -> tuple[Waits, set[Root]]:
    """What each open issue waits for, by root; and the roots that did not say what is open.

    Issues that are only named are asked for too, and what those name, so that a circle is seen.
    """
    waits: Waits = defaultdict(dict)
    for (kind, root, _), issues in answers.items():
        for issue in () if isinstance(issues, str) else issues:
            waits[kind, root][issue.key] = blocking.references(issue.body)
    unknown: set[Root] = set()
    asked: dict[Root, set[str]] = defaultdict(set)
    for _ in range(BLOCKER_ROUNDS):
        named = {root: _named(known) - asked[root] for root, known in waits.items()}
        named = {root: keys for root, keys in named.items() if keys and root not in unknown}
        if not named:
            break
        found = asking.ask_roots(lab, named, lambda tracker, some: tracker.still_open(some))
        for place, open_ones in found.items():
            asked[place] |= named[place]
            if isinstance(open_ones, str):
                unknown.add(place)
            else:
                waits[place] |= {one.key: blocking.references(one.body) for one in open_ones}
    return waits, unknown


def _named(known: Mapping[str, tuple[str, ...]]) -> set[str]:
    """Keys that are named and not known to be open yet."""
    return {key for keys in known.values() for key in keys} - known.keys()


def _candidate(issue: Issue, waits: Mapping[str, tuple[str, ...]], is_unknown: bool) -> Candidate:
    names = waits.get(issue.key, ())
    block = blocking.block_of(issue.key, waits)
    if is_unknown and not set(names) <= waits.keys():
        block = Block(by=None)
    return Candidate(issue.key, issue.title, issue.author, issue.ready_by, block)


def _claims(
    lab: Lab, project: Project, silent: dict[int, str]
) -> tuple[frozenset[str] | None, str]:
    """The keys that branches claim, or why git did not say."""
    if project.pk in silent:
        return None, silent[project.pk]
    try:
        return lab.repos.claims(project.repo(lab.paths)), ""
    except SeamError as error:
        silent[project.pk] = str(error)
        return None, str(error)


def _active() -> tuple[dict[int, set[str]], dict[int, int]]:
    """The keys that active runs hold, and the number of automatic ones, by project. One query."""
    keys: dict[int, set[str]] = defaultdict(set)
    automatic: dict[int, int] = defaultdict(int)
    rows = Run.objects.active().values_list("project_id", "issue_key", "kind")
    for project_id, key, kind in rows:
        keys[project_id].add(key)
        automatic[project_id] += kind == RunKind.AUTO
    return keys, automatic
