"""The rule of the launch pass: which issue starts in which slot, or why none does."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from runs.core.states import AnswerCode
from runs.dispatch import eligibility
from runs.dispatch.eligibility import Candidate, Change, Obstacle, Queue, Room, Why
from runs.hosts.rules import share
from trackers.keys import KeyRule

__all__ = ["Candidate", "Queue", "Refusal", "Room", "Start", "Waiting", "decide_start", "fill"]

_CODES: Mapping[Why, AnswerCode] = {
    Why.NOT_CLONED: AnswerCode.NOT_READY,
    Why.NO_AGENT: AnswerCode.SEAM_FAILED,
    Why.NO_TRACKER: AnswerCode.NO_TRACKER,
    Why.TRACKER_FAILED: AnswerCode.TRACKER_FAILED,
    Why.CLAIMS_UNKNOWN: AnswerCode.SEAM_FAILED,
    Why.NO_PROGRAM: AnswerCode.NO_PROGRAM,
    Why.ROOT_REFUSED: AnswerCode.NO_PROGRAM,
    Why.LOGGED_OUT: AnswerCode.LOGGED_OUT,
    Why.AGENT_HELD: AnswerCode.AGENT_HELD,
    Why.OVER_LIMIT: AnswerCode.OVER_LIMIT,
    Why.CHECKS_INCOMPLETE: AnswerCode.NOT_READY,
    Why.BLOCK_UNKNOWN: AnswerCode.TRACKER_FAILED,
    Why.SESSIONS_UNKNOWN: AnswerCode.SEAM_FAILED,
    Why.NO_HOST: AnswerCode.NO_HOST,
    Why.AT_CAP: AnswerCode.AT_CAP,
}
_MORE: Mapping[Why, str] = {
    Why.NOT_CLONED: "Start again when it is ready.",
    Why.NO_AGENT: "Choose one on the settings page.",
    Why.TRACKER_FAILED: "Nothing was claimed.",
    Why.CLAIMS_UNKNOWN: "Nothing was claimed.",
    Why.LOGGED_OUT: "Log in, then start again.",
    Why.AGENT_HELD: "Nothing was claimed.",
    Why.OVER_LIMIT: "Raise the limit to start all the same.",
    Why.CHECKS_INCOMPLETE: "It is set on the project's page Checks. Nothing was claimed.",
    Why.SESSIONS_UNKNOWN: "So nothing was started. Nothing was claimed.",
}


@dataclass(frozen=True, slots=True)
class Start:
    """Start this issue in this slot."""

    key: str
    slot: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nothing starts, and a person can read why and what to do.

    `may_pass`: nobody could tell in this pass, and the next one asks anyway.
    """

    code: AnswerCode
    text: str
    may_pass: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why one ready issue is not running: what it fails, in order, and the fewest changes."""

    issue: Candidate
    failed: Sequence[Obstacle]
    changes: Sequence[Change]


def decide_start(queue: Queue, room: Room) -> Start | Refusal:
    """Pick the first claimable issue for a person, then check the cap.

    The answers come in the order of the work: queue, claims, pick, cap.
    """
    key = pick(queue)
    if isinstance(key, Refusal):
        return key
    for found in eligibility.of_place(queue.job, room):
        return refusal(found)
    return Start(key, free_slot(room.taken))


def pick(queue: Queue) -> str | Refusal:
    """The issue that a person's start takes, or why there is none."""
    for found in eligibility.of_project(queue):
        if not found.only_auto:
            return refusal(found)
    if queue.wanted:
        return _wanted(queue)
    free = claimable(queue)
    if free:
        return free[0].key
    text = "Nothing is ready to start: no open issue carries the ready label."
    if queue.ready:
        text = (
            "Nothing is ready to start: every ready issue is claimed by a run or by kept work, "
            "blocked by an open one, or from an author that this project does not trust."
        )
    return Refusal(AnswerCode.NOTHING_READY, text)


def pick_further(queue: Queue, *, is_auto: bool) -> str | Refusal:
    """The issue that a loop takes after its first one, or why there is none: no slot is asked for."""
    if not is_auto:
        return pick(queue)
    failed = [(issue, eligibility.of_further(queue, issue)) for issue in queue.ready or ()]
    for issue, found in failed:
        if not found:
            return issue.key
    if not failed:
        return pick(queue)
    return refusal(failed[0][1][0])


def claimable(queue: Queue) -> list[Candidate]:
    """The ready issues that nothing of their own keeps from starting, in order."""
    return [issue for issue in queue.ready or () if not any(eligibility.of_issue(queue, issue))]


def blocked(queue: Queue) -> list[Candidate]:
    """The ready issues that nobody works on and that wait for others, or may, in order."""
    taken = {*queue.active, *(queue.claims or ())}
    waits = [one for one in queue.ready or () if not (one.block.is_free or one.block.is_unasked)]
    return [one for one in waits if one.key not in taken]


def unasked(queue: Queue) -> list[Candidate]:
    """The ready issues that nothing is known against, and that others go before."""
    return [
        issue
        for issue in queue.ready or ()
        if issue.block.is_unasked
        and all(found.why is Why.BLOCK_UNKNOWN for found in eligibility.of_issue(queue, issue))
    ]


def hopeful(queue: Queue) -> list[Candidate]:
    """What is wanted and could start, or may for all that anybody could tell; in order.

    A blocker that nobody could name settles nothing: could not tell ends no session.
    """
    return [
        issue
        for issue in queue.ready or ()
        if queue.want.includes(issue.key)
        and not issue.stopped_by
        and all(found.why is Why.BLOCK_UNKNOWN for found in eligibility.of_issue(queue, issue))
    ]


def held(queue: Queue, room: Room) -> str:
    """What keeps the first of these from starting, as a sentence; empty when nothing does."""
    found = [eligibility.obstacles(queue, issue, room) for issue in hopeful(queue)[:1]]
    return found[0][0].text if found and found[0] else ""


def fill(queues: Sequence[Queue], room: Room) -> list[tuple[Queue, Start]]:
    """What starts here without a person: an issue at a time, until nothing may.

    The project has its turn that has least of its share: runs by its weight. Never more than the
    projects allow at a time, nor than the host and all hosts have room for, nor what another host
    takes.
    """
    picked: list[tuple[Queue, Start]] = []
    line = list(queues)
    while line and room.full_at is None and room.occupied is not None:
        queue = min(line, key=lambda one: share(one.auto_alive, one.weight))
        place = line.index(queue)
        found = None if room.is_elsewhere(queue.job) else _first(queue, room)
        if found is None:
            line.pop(place)
            continue
        start = Start(found.key, free_slot(room.taken))
        picked.append((queue, start))
        line[place] = _after(queue, found.key)
        room = room.after_one(start.slot)
    return picked


def explain(queue: Queue, room: Room) -> list[Waiting]:
    """Why each ready issue that no run has is not running, by the rule that starts them."""
    first = {start.key for _, start in fill([queue], room)}
    answer = []
    for issue in queue.ready or ():
        if issue.key in queue.active:
            continue
        failed = eligibility.obstacles(queue, issue, room)
        if not failed and issue.key not in first and not room.is_elsewhere(queue.job):
            failed = (eligibility.not_first(issue),)
        answer.append(Waiting(issue, failed, eligibility.changes(issue, failed)))
    return answer


def free_slot(taken: Collection[int]) -> int:
    """The lowest slot that nobody holds."""
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


def _first(queue: Queue, room: Room) -> Candidate | None:
    """The first issue that fails no condition at all."""
    ready = queue.ready or ()
    return next((issue for issue in ready if not eligibility.obstacles(queue, issue, room)), None)


def _after(queue: Queue, key: str) -> Queue:
    """The queue when this issue runs."""
    active = {*queue.active, key}
    want = queue.want.after_one()
    return replace(queue, active=active, auto_alive=queue.auto_alive + 1, want=want)


def _wanted(queue: Queue) -> str | Refusal:
    """The one issue that was asked for, if it may start. Whoever names it vouches for it."""
    issue = next((one for one in queue.ready or () if one.key == queue.wanted), None)
    if queue.wanted in {*queue.active, *(queue.claims or ())}:
        what = "the worktree of an earlier run" if queue.wanted in queue.left else "a kept branch"
        if issue is not None and issue.pull is not None:
            what = f"pull request #{issue.pull}, which is open"
        what = "a run" if queue.wanted in queue.active else what
        text = f"Issue {queue.wanted} is already claimed by {what}."
        return Refusal(AnswerCode.NOTHING_READY, text)
    if issue is None:
        text = f"Issue {queue.wanted} is not ready: it must be open and carry the ready label."
        if queue.keys is KeyRule.WORD:
            text = (
                f"Issue {queue.wanted} is not ready: it must be open, not in progress and not "
                "blocked, and carry the ready label where the project has one."
            )
        return Refusal(AnswerCode.NOTHING_READY, text)
    for found in eligibility.of_issue(queue, issue):
        if not found.only_auto:
            return refusal(found)
    return queue.wanted


def refusal(found: Obstacle) -> Refusal:
    """What keeps something from starting, as an answer to whoever asked for it."""
    code = _CODES.get(found.why, AnswerCode.NOTHING_READY)
    text = f"{found.text} {_MORE.get(found.why, '')}".strip()
    return Refusal(code, text, may_pass=found.why is Why.SESSIONS_UNKNOWN)
