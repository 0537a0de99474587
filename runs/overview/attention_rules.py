"""What needs a person, and in which order. A pure rule over what the overview has loaded."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import IntEnum

from runs.accounts import hold_rules
from runs.core.states import Outcome, ProjectState, Trouble
from runs.gates.level_rules import Level, Standing
from runs.groups.stall_rules import Fate
from runs.overview.need_facts import (
    AgentNeeds,
    GroupNeeds,
    HostNeeds,
    LimitNeeds,
    Picture,
    ProjectNeeds,
    PullNeeds,
    RunNeeds,
    WaitNeeds,
    WatchNeeds,
    WorkflowNeeds,
)
from runs.watch import rules as watch_rules
from runs.watch.session import Reason

BAD = (Outcome.DIED, Outcome.TIMED_OUT, Outcome.FAILED, Outcome.REJECTED)
SEEN_FOR = timedelta(days=1)
MANY = 3


class NeedKind(IntEnum):
    """Why something needs a person, by what is lost by waiting.

    First what stands still until somebody comes, then what goes on by itself later, then what has
    failed, at last what is only to be looked at.
    """

    WAITS = 0
    LATE = 1
    HOST = 2
    PAUSED = 3
    STALLED = 4
    WORKFLOW = 5
    CLONE = 6
    HELD = 7
    LIMIT = 8
    REFUSED = 9
    WATCH = 10
    MONITOR = 11
    GROUP = 12
    RUN = 13
    GATE = 14
    LEVEL = 15
    UNCLOSED = 16
    UNTIDY = 17
    CLOSED = 18
    PULL = 19
    PARKED = 20
    ACCEPTANCE = 21
    ISSUE_CLOSED = 22


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
    `facts` change when it is another thing than somebody saw, and with no clock or wording.
    `run`: the one to look at before the action, where there is one.
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
    facts: str = ""
    run: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it tells of something that has ended, so that it can be dismissed for good."""
        return self.kind in _OVER


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
    found += [*_late(picture), *(_of_host(host) for host in picture.hosts)]
    found += [_of_agent(agent) for agent in picture.agents]
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
    if run.is_closed:
        kind, ident = NeedKind.ISSUE_CLOSED, f"need-issue-{run.id}"
        what, facts = f"{run.what} {run.since}", _facts(run.what, run.at)
        return Need(kind, ident, "warn", run.title, what, run.advice, (run.id,), facts=facts)
    said = f"{run.note.rstrip('.')}. " if run.note else ""
    budget = "rests" if run.is_at_gates else "goes on"
    what, why = f"{run.what} since {run.since}", f"{said}{run.advice} Its budget {budget}."
    ident, facts = f"need-wait-{run.id}", _facts(run.what, run.at)
    kind = NeedKind.ACCEPTANCE if run.is_at_gates else NeedKind.WAITS
    return Need(kind, ident, "bad", run.title, what, why, (run.id,), facts=facts)


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
            facts=_facts(picture.late_since),
        )


def _of_host(host: HostNeeds) -> Need:
    since = f" since {host.since}" if host.since else ""
    is_one = host.runs == 1
    there = _count(host.runs, "run is there", "runs are there")
    it, stays, them = (
        ("it does", "It stays as it is", "it")
        if is_one
        else ("they do", "They stay as they are", "them")
    )
    why = (
        f"{there}, and nobody can tell how {it}. {stays} until the machine is back, or until you "
        f"give {them} up. What was pushed is not touched."
    )
    facts = _facts(host.id, host.at)
    ident, what = f"need-host-{host.id}", f"is silent{since}"
    return Need(
        NeedKind.HOST, ident, "bad", f"Host {host.name}", what, why, (host.id,), facts=facts
    )


def _of_agent(agent: AgentNeeds) -> Need:
    what = f"{hold_rules.words(agent.trouble)} since {agent.since}, tried again at {agent.until}"
    runs = f"{_count(agent.waiting, 'run waits and goes', 'runs wait and go')} on then."
    waits = runs if agent.waiting else "Nothing is started with it until then."
    said = f"{agent.said.rstrip('.')}." if agent.said else ""
    why = " ".join(part for part in (waits, hold_rules.advice(agent.trouble), said) if part)
    ident, facts = f"need-agent-{agent.id}", _facts(agent.trouble, agent.at)
    about, trouble = (agent.id,), agent.trouble
    return Need(
        NeedKind.HELD, ident, "warn", agent.name, what, why, about, trouble=trouble, facts=facts
    )


def _of_limit(limit: LimitNeeds) -> Need:
    what = f"reached the limit of {limit.what}"
    why = (
        f"{limit.numbers}. Nothing new starts until 00:00 UTC, or until somebody raises the limit; "
        "it goes on by itself then."
    )
    ident, about = f"need-limit-{limit.id}", (limit.id,) if limit.id else ()
    facts = _facts(limit.what, limit.day)
    return Need(NeedKind.LIMIT, ident, "warn", limit.name, what, why, about, facts=facts)


def _of_leaving(project: ProjectNeeds) -> Iterator[Need]:
    if project.error:
        why = f"{project.error.rstrip('.')}. It is tried again by itself."
        yield _need(NeedKind.CLONE, project, "bad", "could not be removed yet", why)


def _of_project(project: ProjectNeeds) -> Iterator[Need]:
    if project.state == ProjectState.FAILED:
        yield _need(NeedKind.CLONE, project, "bad", "could not be cloned", project.error)
    if project.is_paused:
        what = f"is paused after {project.streak} failed runs in a row"
        why = "Nothing starts by itself until you press Resume."
        last = (project.streak, project.last_failure)
        paused = _need(NeedKind.PAUSED, project, "bad", what, why, *last)
        yield replace(paused, run=project.last_failure)
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
        what = "is stopped: tracker unreachable"
        yield _need(NeedKind.STALLED, project, "bad", what, why, watch.id)
    elif watch.code in watch_rules.FAILED and not watch.is_seen and not watch.is_mended:
        what = f"watch session {watch.id}: {watch.reason} (exit code {watch.code})"
        ident, about = f"need-watch-{project.id}", (project.id, watch.id)
        why = _WATCH_WHY.get(watch.reason, "")
        if watch.follow_up:
            why = f"{why} Issue {watch.follow_up} was made of it; nothing was closed."
        # Whoever dismissed the first failure has not seen that of a repeat.
        facts = _facts(watch.id, watch.code, *([] if watch.repeat is None else [watch.repeat]))
        yield Need(NeedKind.WATCH, ident, "bad", project.name, what, why, about, facts=facts)


def _of_group(project: ProjectNeeds, group: GroupNeeds) -> Need:
    about = (project.id, group.id)
    if not group.stalled:
        what = f"group {group.name}: its monitor failed"
        why = f"{group.error.rstrip('.')}. No result was recorded; nothing of the work was touched."
        ident = f"need-monitor-{group.id}"
        facts = _facts(why)
        return Need(NeedKind.MONITOR, ident, "bad", project.name, what, why, about, facts=facts)
    what = f"group {group.name}: {_count(len(group.stalled), 'task is', 'tasks are')} stalled"
    fate = next(text for fate, text in _FATES.items() if fate in group.fates)
    why = f"{', '.join(group.stalled)}. {fate}"
    ident, facts = f"need-group-{group.id}", _facts(group.stalled, fate)
    return Need(NeedKind.GROUP, ident, "warn", project.name, what, why, about, facts=facts)


def _of_workflow(project: ProjectNeeds, workflow: WorkflowNeeds) -> Need:
    what = f"workflow {workflow.name} waits for you"
    why = (
        f"{workflow.note.rstrip('.')}. Start that phase again or stop it; waiting uses up no time."
    )
    ident, about = f"need-workflow-{workflow.id}", (project.id, workflow.id)
    facts = _facts(workflow.note)
    return Need(NeedKind.WORKFLOW, ident, "bad", project.name, what, why, about, facts=facts)


def _need(
    kind: NeedKind, project: ProjectNeeds, tone: str, what: str, why: str, *last: object
) -> Need:
    """A need of a project; it is another one when its words are, or when `last` is."""
    ident, facts = f"need-{_NAMES[kind]}-{project.id}", _facts(what, why, *last)
    return Need(kind, ident, tone, project.name, what, why, (project.id,), facts=facts)


def _facts(*parts: object) -> str:
    """A short tag of what makes a need the one that it is."""
    told = "|".join(map(str, parts))
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _of_pull(pull: PullNeeds) -> Need:
    ident = f"need-pull-{pull.project}-{pull.number}"
    title = f"{pull.name} #{pull.number}"
    what = "waits for your review"
    about = (pull.project, pull.number)
    if pull.is_closed:
        what, why = "was closed without merging", f"Its issue stays claimed. {pull.title}"
        ident = f"need-closed-{pull.project}-{pull.number}"
        return Need(NeedKind.CLOSED, ident, "warn", title, what, why, about, facts=_facts(why))
    if pull.red:
        what, facts = "has failed checks", _facts(pull.red)
        return Need(
            NeedKind.PULL, ident, "bad", title, what, pull.red, about, pull.url, facts=facts
        )
    alike = Alike(pull.project, pull.name, "{} pull requests wait for your review")
    why, url, facts = pull.title, pull.url, _facts(pull.title)
    return Need(
        NeedKind.PULL, ident, "good", title, what, why, about, url, alike=alike, facts=facts
    )


def _of_run(run: RunNeeds) -> Iterator[Need]:
    if run.unclosed_since:
        yield _unclosed(run)
    if run.is_seen:
        return
    if run.level is not None:
        yield _level(run, run.level)
    if run.is_stopped_at_gate and not run.is_retried:
        yield _gate(run)
    elif run.outcome in BAD and not run.is_retried:
        what = Outcome(run.outcome).words if run.did_start else "did not start"
        ident = f"need-run-{run.id}"
        alike = Alike(*run.project, f"{{}} runs {_past(run)}", _common(run), run.outcome)
        why, about, facts = _reason(run), (run.id,), _facts(run.outcome, run.reason)
        yield Need(
            NeedKind.RUN, ident, "bad", run.title, what, why, about, alike=alike, facts=facts
        )
    if run.warning:
        ident, what = f"need-tidy-{run.id}", "was not tidied up completely"
        why, facts = run.warning, _facts(run.warning)
        yield Need(NeedKind.UNTIDY, ident, "warn", run.title, what, why, (run.id,), facts=facts)


def _gate(run: RunNeeds) -> Need:
    """A gate that failed for the last time: nothing goes on by itself."""
    gate, _, why = run.reason.partition(": ")
    name = gate.removeprefix("gates").removeprefix("gate ").strip()
    times = _count(run.attempts, "attempt", "attempts")
    what = f"did not pass {f'the {name} gate' if name else 'the gates'} in {times}"
    kept = " Its work is kept." if run.is_kept else ""
    alike = Alike(*run.project, "{} runs did not pass their gates", "", run.outcome)
    ident, said = f"need-gate-{run.id}", f"{_sentence(why)}{kept}"
    facts, about = _facts(run.attempts, run.reason), (run.id,)
    return Need(NeedKind.GATE, ident, "bad", run.title, what, said, about, alike=alike, facts=facts)


def _level(run: RunNeeds, level: Level) -> Need:
    is_over, words = level.standing is Standing.OVER, "{} runs were never proven at the run level"
    alike = Alike(*run.project, words, "Their accepted work is kept.") if is_over else None
    ident, about, facts = f"need-level-{run.id}", (run.id,), _facts(level.what, level.why)
    what, why = level.what, level.why
    return Need(NeedKind.LEVEL, ident, "bad", run.title, what, why, about, alike=alike, facts=facts)


def _unclosed(run: RunNeeds) -> Need:
    why = "Its work is accepted. It is tried again each minute; the timeline of the run says why."
    what = f"has an issue that could not be closed since {run.unclosed_since}"
    ident, facts = f"need-unclosed-{run.id}", _facts(run.id)
    return Need(NeedKind.UNCLOSED, ident, "warn", run.title, what, why, (run.id,), facts=facts)


def _reason(run: RunNeeds) -> str:
    kept = " Its work is kept." if run.is_kept else ""
    reason = _sentence(run.reason)
    return f"{reason}{kept}" if reason else kept.strip()


def _common(run: RunNeeds) -> str:
    """The part of the reason that runs share which ended alike; what follows tells of one alone."""
    return _sentence(run.reason.partition(";")[0])


def _sentence(reason: str) -> str:
    plain = reason.removeprefix("did not start: ").replace("`", "").strip().rstrip(".")
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
_OVER = frozenset({NeedKind.WATCH, NeedKind.RUN, NeedKind.GATE, NeedKind.LEVEL, NeedKind.UNTIDY})
# All kinds about runs share a place, so that runs stay newest first.
_OF_RUNS = (NeedKind.GATE, NeedKind.LEVEL, NeedKind.UNCLOSED, NeedKind.UNTIDY)
_PLACES = {kind: kind for kind in NeedKind} | dict.fromkeys(_OF_RUNS, NeedKind.RUN)
_PLACES[NeedKind.ACCEPTANCE] = _PLACES[NeedKind.ISSUE_CLOSED] = NeedKind.WAITS
