"""The one rule of what may start: every condition that a ready issue fails, and what would change it.

The launch pass starts an issue that fails none; a page and the API show what the others fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from runs.core import naming
from runs.core.states import ProjectState
from runs.dispatch import streak
from runs.dispatch.blocking import FREE, Block
from runs.hosts.rules import HostFacts, Job, Place, place
from trackers.keys import KeyRule, why_unfit


@dataclass(frozen=True, slots=True)
class Want:
    """What a project wants started by itself: nothing, everything that is ready, or only these.

    `without`: what its watch session has worked on already. `most`: how many more it
    may start, None: as many as the caps allow.
    """

    is_on: bool = False
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    most: int | None = None

    def includes(self, key: str) -> bool:
        """Whether this issue is among what is wanted."""
        return key not in self.without and (self.only is None or key in self.only)

    def after_one(self) -> Want:
        """What is wanted still when one run more was started."""
        return self if self.most is None else replace(self, most=self.most - 1)


NOTHING = Want()
ANY = Job()


class Why(StrEnum):
    """The conditions in the order in which they are asked and told."""

    NOT_CLONED = "not_cloned"
    NO_AGENT = "no_agent"
    NO_TRACKER = "no_tracker"
    TRACKER_FAILED = "tracker_failed"
    CLAIMS_UNKNOWN = "claims_unknown"
    NO_PROGRAM = "no_program"
    ROOT_REFUSED = "root_refused"
    LOGGED_OUT = "logged_out"
    LOGIN_UNKNOWN = "login_unknown"
    AGENT_HELD = "agent_held"
    OVER_LIMIT = "over_limit"
    CHECKS_INCOMPLETE = "checks_incomplete"
    RUNNING = "running"
    CLAIMED = "claimed"
    UNFIT_KEY = "unfit_key"
    BLOCKED = "blocked"
    CYCLE = "cycle"
    BLOCK_UNKNOWN = "block_unknown"
    NOT_TRUSTED = "not_trusted"
    SWITCHED_OFF = "switched_off"
    NOT_WANTED = "not_wanted"
    AT_LIMIT = "at_limit"
    PAUSED = "paused"
    RETRIED_LATER = "retried_later"
    START_FAILED = "start_failed"
    START_STOPPED = "start_stopped"
    PROJECT_FULL = "project_full"
    SESSIONS_UNKNOWN = "sessions_unknown"
    NO_HOST = "no_host"
    AT_CAP = "at_cap"
    NOT_FIRST = "not_first"


class Act(StrEnum):
    """What a person can do about a failed condition; each door knows a button for it."""

    WAIT = "wait"
    START = "start"
    TURN_ON = "turn_on"
    RESET = "reset"
    DISCARD = "discard"
    REVIEW = "review"
    CLOSE = "close"
    EDIT = "edit"
    RAISE_CAP = "raise_cap"
    RAISE_PARALLEL = "raise_parallel"
    RAISE_LIMIT = "raise_limit"
    SET_CHECKS = "set_checks"
    CHOOSE_AGENT = "choose_agent"
    LOG_IN = "log_in"
    TRY_AGAIN = "try_again"
    CLONE = "clone"
    RENAME = "rename"
    SEE_HOSTS = "see_hosts"


_HAS_ALREADY = frozenset({Why.LOGIN_UNKNOWN, Why.PROJECT_FULL})
# A person who names such an issue may start it all the same.
UNTRUSTED = "author not trusted"
_SHORT = {Why.UNFIT_KEY: "unfit key", Why.NOT_TRUSTED: UNTRUSTED}


@dataclass(frozen=True, slots=True)
class Change:
    """One change that a person can make: what, and to which issue, branch or agent."""

    act: Act
    text: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """One failed condition. `only_auto`: a person who starts the issue by name may pass it."""

    why: Why
    text: str
    change: Change
    only_auto: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """One ready issue with what decides whether it may start.

    `retry_at`: no automatic start before, since the last one failed. `stopped_by`: who stopped the
    last one before its agent began. `branch`: what claims it, else what a run would. `pull`: the open pull
    request of that branch, as far as known.
    """

    key: str
    title: str = ""
    author: str = ""
    ready_by: str | None = None
    block: Block = FREE
    url: str = ""
    retry_at: datetime | None = None
    stopped_by: str = ""
    pull: int | None = None
    pull_url: str = ""
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Queue:
    """One project's side of a launch: ready issues in order, what is taken, what is wanted.

    `ready` is None when the tracker did not answer, `claims` when git did not, `is_logged_in` when
    the agent could not be asked. `wanted` is the one issue that a person named; `unfit` is why the
    agent's program cannot be started on this machine, `agent_hold` why its account cannot be used,
    `over_limit` which limit of the day is reached, and `unprovable` what its gates lack to prove
    anything.
    `was_not_asked`: the tracker's failure is an earlier one, about which it is not time to ask
    again yet. `tracker_passes`: it is one that passes by itself. `left` are claims of worktree folders whose branch is gone.
    """

    has_tracker: bool
    ready: Sequence[Candidate] | None
    claims: Collection[str] | None
    active: Collection[str]
    wanted: str = ""
    tracker_error: str = ""
    git_error: str = ""
    project: int = 0
    state: str = ProjectState.READY
    has_agent: bool = True
    agent: str = ""
    is_logged_in: bool | None = True
    unfit: Obstacle | None = None
    agent_hold: str = ""
    over_limit: str = ""
    unprovable: str = ""
    trusted: Collection[str] = ()
    want: Want = NOTHING
    streak: int = 0
    waits: bool = False
    auto_alive: int = 0
    parallel: int = 1
    asked_again_at: datetime | None = None
    was_not_asked: bool = False
    tracker_passes: bool = False
    keys: KeyRule = KeyRule.NUMBER
    left: Collection[str] = ()
    job: Job = ANY
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Room:
    """Slots that live sessions and starting runs hold, and the caps: of this host, and of all.

    `occupied` counts this host and is None when tmux did not answer; `elsewhere` all others.
    `hosts` are all that a start may go to, this one, `host`, among them; none: there is only this.
    """

    taken: Collection[int]
    occupied: int | None
    cap: int
    elsewhere: int = 0
    host_cap: int | None = None
    host: str = ""
    hosts: Sequence[HostFacts] = ()

    def place(self, job: Job) -> Place:
        """The host that takes the next start of a project, or why none does."""
        return place(job, self.hosts) if self.hosts else Place(self.host)

    def is_elsewhere(self, job: Job) -> bool:
        """Whether another host takes it, or says why none does."""
        found = self.place(job)
        return found.is_known and found.host != self.host

    def after_one(self, slot: int) -> Room:
        """The same with one start more on this host."""
        hosts = [
            replace(one, free=one.free - 1) if one.name == self.host else one for one in self.hosts
        ]
        taken, occupied = {*self.taken, slot}, (self.occupied or 0) + 1
        return replace(self, taken=taken, occupied=occupied, hosts=hosts)

    @property
    def full_at(self) -> int | None:
        """The cap that is reached, None while there is a slot."""
        if self.occupied is None:
            return None
        if self.host_cap is not None and self.occupied >= self.host_cap:
            return self.host_cap
        return self.cap if self.occupied + self.elsewhere >= self.cap else None


def obstacles(queue: Queue, issue: Candidate, room: Room) -> tuple[Obstacle, ...]:
    """Every condition of automatic work that a ready issue fails; none: it starts."""
    return (
        *of_project(queue),
        *of_issue(queue, issue),
        *_of_automatic_work(queue, issue),
        *of_place(queue.job, room),
    )


def of_further(queue: Queue, issue: Candidate) -> tuple[Obstacle, ...]:
    """The same for a run of automatic work that takes a further issue: it has its slot and its agent."""
    found = (*of_project(queue), *of_issue(queue, issue), *_of_automatic_work(queue, issue))
    return tuple(one for one in found if one.why not in _HAS_ALREADY)


def of_project(queue: Queue) -> Iterator[Obstacle]:
    """What keeps every issue of a project from starting."""
    if queue.state != ProjectState.READY:
        has_failed = queue.state == ProjectState.FAILED
        change = Change(Act.CLONE, "Clone again") if has_failed else Change(Act.WAIT, "Wait")
        yield Obstacle(Why.NOT_CLONED, ProjectState(queue.state).not_ready, change)
    if not queue.has_agent:
        change = Change(Act.CHOOSE_AGENT, "Choose an agent")
        yield Obstacle(Why.NO_AGENT, "No agent is chosen.", change)
    yield from _of_tracker_and_git(queue)
    if queue.unfit is not None:
        yield queue.unfit
    elif queue.is_logged_in is False:
        change = Change(Act.LOG_IN, f"Log {queue.agent or 'the agent'} in", queue.agent)
        yield Obstacle(Why.LOGGED_OUT, f"{queue.agent or 'The agent'} is not logged in.", change)
    elif queue.is_logged_in is None:
        text = f"{queue.agent or 'The agent'} did not say whether it is logged in."
        yield _wait(Why.LOGIN_UNKNOWN, text, only_auto=True)
    if queue.agent_hold:
        change = Change(Act.TRY_AGAIN, f"Try {queue.agent} again now", queue.agent)
        yield Obstacle(Why.AGENT_HELD, queue.agent_hold, change)
    yield from _of_settings(queue)


def _of_settings(queue: Queue) -> Iterator[Obstacle]:
    """What somebody set, or did not, so that a run would be ended or could prove nothing."""
    if queue.over_limit:
        yield Obstacle(Why.OVER_LIMIT, queue.over_limit, Change(Act.RAISE_LIMIT, "Raise the limit"))
    if queue.unprovable:
        change = Change(Act.SET_CHECKS, "Open Checks")
        yield Obstacle(Why.CHECKS_INCOMPLETE, queue.unprovable, change)


def _of_tracker_and_git(queue: Queue) -> Iterator[Obstacle]:
    if not queue.has_tracker:
        yield _wait(Why.NO_TRACKER, "This project has no tracker that labsite can read.")
    elif queue.ready is None:
        text = f"The tracker did not answer: {_said(queue.tracker_error)}."
        yield _wait(Why.TRACKER_FAILED, text)
    if queue.claims is None:
        text = f"git could not list the claims: {_said(queue.git_error)}."
        yield _wait(Why.CLAIMS_UNKNOWN, text)


def _said(error: str) -> str:
    """Words of others inside a sentence of ours, which ends it itself."""
    return error.strip().rstrip(".") or "no reason given"


def of_issue(queue: Queue, issue: Candidate) -> Iterator[Obstacle]:
    """What keeps one issue from starting while others of its project may."""
    if issue.key in queue.active:
        yield _wait(Why.RUNNING, f"A run works on issue {issue.key}.")
    elif issue.key in (queue.claims or ()):
        branch = issue.branch or naming.branch_for(issue.key)
        change = Change(Act.DISCARD, f"Discard {branch}", branch)
        text = f"The branch {branch} of an earlier run is kept and claims the issue."
        if issue.key in queue.left:
            text = (
                f"The worktree of an earlier run is kept and claims the issue. Its branch {branch} "
                "is gone: it was renamed or deleted."
            )
        if issue.pull is not None:
            text = f"Pull request #{issue.pull} of {branch} is open and claims the issue."
            change = Change(Act.REVIEW, f"Review pull request #{issue.pull}", str(issue.pull))
        yield Obstacle(Why.CLAIMED, text, change)
    if unfit := why_unfit(issue.key, queue.keys):
        text = f"Its key cannot name a branch and a session: {unfit}."
        change = Change(Act.RENAME, "Give it another key on its tracker")
        yield Obstacle(Why.UNFIT_KEY, text, change)
    yield from _blocks(issue)
    if not _is_trusted(queue, issue):
        text = (
            f"Neither its author ({issue.author or 'unknown'}) nor who marked it ready "
            f"({issue.ready_by or 'unknown'}) is trusted by this project."
        )
        change = Change(Act.START, f"Start #{issue.key} yourself", issue.key)
        yield Obstacle(Why.NOT_TRUSTED, text, change, only_auto=True)


def of_place(job: Job, room: Room) -> Iterator[Obstacle]:
    """What keeps everything of a project from starting on whichever host it would go to."""
    found = room.place(job)
    if not found.is_known:
        change = Change(Act.SEE_HOSTS, "Open Hosts")
        yield Obstacle(Why.NO_HOST, found.text, change)
    elif found.miss and (job.label or len(room.hosts) > 1):
        yield Obstacle(Why.AT_CAP, found.text, Change(Act.SEE_HOSTS, "Open Hosts"))
    elif found.host == room.host:
        yield from of_room(room)
    elif room.occupied is not None and room.occupied + room.elsewhere >= room.cap:
        yield from of_room(replace(room, host_cap=None))


def of_room(room: Room) -> Iterator[Obstacle]:
    """What keeps everything from starting."""
    if room.occupied is None:
        yield _wait(Why.SESSIONS_UNKNOWN, "tmux did not say which sessions are alive.")
    elif room.full_at is not None:
        more = room.full_at + 1
        change = Change(Act.RAISE_CAP, f"Raise the session cap to {more}", str(more))
        text = f"All {room.full_at} slots are taken. A slot is free again when a run ends or is stopped."
        yield Obstacle(Why.AT_CAP, text, change)


def not_first(issue: Candidate) -> Obstacle:
    """The issue could start, but others of its project go first and take what is free."""
    text = "Issues with a lower number go first and take the free places."
    change = Change(Act.START, f"Start #{issue.key} now", issue.key)
    return Obstacle(Why.NOT_FIRST, text, change, only_auto=True)


def changes(issue: Candidate, failed: Sequence[Obstacle]) -> tuple[Change, ...]:
    """The fewest changes after which an issue starts; none when it starts by itself.

    What also stops a person has to go, one change each. What stops only automatic work is passed
    by one press of Start, which changes nothing else.
    """
    hard = tuple(dict.fromkeys(found.change for found in failed if not found.only_auto))
    if any(found.only_auto for found in failed):
        return (*hard, Change(Act.START, f"Start #{issue.key}", issue.key))
    return hard


def in_short(queue: Queue, issue: Candidate) -> str:
    """What keeps an issue from starting, in a few words for a list; empty for what claims it.

    Who works on an issue, and what an earlier run left of it, is known to every list already.
    """
    found = {one.why for one in of_issue(queue, issue)}
    if found & {Why.BLOCKED, Why.CYCLE} and issue.block.by:
        return f"waits for #{issue.block.by[0]}"
    return next((words for why, words in _SHORT.items() if why in found), "")


def _blocks(issue: Candidate) -> Iterator[Obstacle]:
    block = issue.block
    if block.is_unasked:
        text = "Others go first. What it waits for is asked when its turn comes."
        yield _wait(Why.BLOCK_UNKNOWN, text)
    elif block.by is None:
        yield _wait(Why.BLOCK_UNKNOWN, "The tracker did not say whether what it waits for is open.")
    elif block.cycle:
        way = " → ".join(f"#{key}" for key in block.cycle)
        change = Change(Act.EDIT, f"Edit #{issue.key}", issue.key)
        text = f"These issues wait for each other in a circle: {way}."
        yield Obstacle(Why.CYCLE, text, change)
        block = Block(tuple(key for key in block.by if key != block.cycle[1]))
    for key in block.by or ():
        change = Change(Act.CLOSE, f"Finish #{key}", key)
        yield Obstacle(Why.BLOCKED, f"It is blocked by #{key}, which is open.", change)


def _of_automatic_work(queue: Queue, issue: Candidate) -> Iterator[Obstacle]:
    """What keeps an issue from starting without a person; the person's own start may pass it."""
    if not queue.want.is_on:
        change = Change(Act.TURN_ON, "Turn automatic work on")
        yield _auto(Why.SWITCHED_OFF, "Automatic work of this project is off.", change)
    elif not queue.want.includes(issue.key):
        text = "What runs here does not include this issue, or has worked on it already."
        yield _auto(Why.NOT_WANTED, text, Change(Act.START, f"Start #{issue.key}", issue.key))
    elif queue.want.most is not None and queue.want.most < 1:
        text = "The watch session starts no more issues: its limit is reached."
        yield _auto(Why.AT_LIMIT, text, Change(Act.START, f"Start #{issue.key}", issue.key))
    if streak.is_paused(queue.streak):
        text = f"Automatic work is paused: {queue.streak} runs in a row failed."
        yield _auto(Why.PAUSED, text, Change(Act.RESET, "Resume automatic work"))
    if queue.waits:
        text = (
            "Nothing is started by itself for a moment: starts of several issues failed in a row, git "
            "did not answer, or a loop has just ended."
        )
        yield _auto(Why.RETRIED_LATER, text, Change(Act.RESET, "Try again now"))
    yield from _of_last_start(issue)
    if queue.auto_alive >= queue.parallel:
        runs = "run is" if queue.parallel == 1 else "runs are"
        text = f"{queue.auto_alive} automatic {runs} at work, and {queue.parallel} may be."
        change = Change(Act.RAISE_PARALLEL, "Allow one more", str(queue.parallel + 1))
        yield _auto(Why.PROJECT_FULL, text, change)


def _of_last_start(issue: Candidate) -> Iterator[Obstacle]:
    change = Change(Act.START, f"Start #{issue.key}", issue.key)
    if issue.stopped_by:
        text = f"{issue.stopped_by} stopped its last start; it waits until somebody starts it."
        yield _auto(Why.START_STOPPED, text, change)
    elif issue.retry_at is not None:
        text = f"Its last start failed; it is tried again at {issue.retry_at:%H:%M} UTC."
        yield _auto(Why.START_FAILED, text, change)


def _auto(why: Why, text: str, change: Change) -> Obstacle:
    return Obstacle(why, text, change, only_auto=True)


def _wait(why: Why, text: str, only_auto: bool = False) -> Obstacle:
    return Obstacle(why, text, Change(Act.WAIT, "Wait"), only_auto)


def _is_trusted(queue: Queue, issue: Candidate) -> bool:
    """Whoever could not be named is nobody's friend (could not tell never starts anything)."""
    known = {name.casefold() for name in (issue.author, issue.ready_by) if name}
    return not queue.trusted or bool(known & set(queue.trusted))
