"""The rule of the launch pass: which issue starts in which slot, or why none does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from runs.domain.states import AnswerCode


@dataclass(frozen=True, slots=True)
class Queue:
    """One project's side of a launch: ready issues in order, what is taken, what is wanted.

    `ready` is None when the tracker did not answer, `claims` when git did not.
    """

    has_tracker: bool
    ready: Sequence[str] | None
    claims: Collection[str] | None
    active: Collection[str]
    wanted: str = ""
    tracker_error: str = ""
    git_error: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """The host's side: slots that live sessions and starting runs hold, and the cap."""

    taken: Collection[int]
    occupied: int | None
    cap: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start this issue in this slot."""

    key: str
    slot: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Nothing starts, and a person can read why and what to do."""

    code: AnswerCode
    text: str


def decide_start(queue: Queue, room: Room) -> Start | Refusal:
    """Pick the first claimable issue, then check the cap (LAB-53 to LAB-57, LAB-66).

    The order of the answers is the order of work of LAB-57: queue, claims, pick, cap.
    """
    key = pick(queue)
    if isinstance(key, Refusal):
        return key
    if room.occupied is None:
        return Refusal(
            AnswerCode.SEAM_FAILED,
            "tmux did not say which sessions are alive, so nothing was started. Nothing was claimed.",
        )
    if room.occupied >= room.cap:
        return Refusal(
            AnswerCode.AT_CAP,
            f"All {room.cap} slots are taken. A slot is free again when a run ends or is stopped.",
        )
    return Start(
        key, next(n for n in range(1, room.cap + 2 + len(room.taken)) if n not in room.taken)
    )


def pick(queue: Queue) -> str | Refusal:
    """The issue to start, or why there is none (LAB-54, LAB-55, LAB-56, LAB-64)."""
    if not queue.has_tracker:
        return Refusal(AnswerCode.NO_TRACKER, "This project has no tracker that labsite can read.")
    if queue.ready is None:
        return Refusal(
            AnswerCode.TRACKER_FAILED,
            f"The tracker did not answer: {queue.tracker_error or 'no reason given'}. Nothing was claimed.",
        )
    if queue.claims is None:
        return Refusal(
            AnswerCode.SEAM_FAILED,
            f"git could not list the claims: {queue.git_error or 'no reason given'}. Nothing was claimed.",
        )
    taken = set(queue.claims) | set(queue.active)
    free = [key for key in queue.ready if key not in taken]
    if queue.wanted:
        return _wanted(queue, taken)
    if free:
        return free[0]
    if queue.ready:
        return Refusal(
            AnswerCode.NOTHING_READY,
            "Nothing is ready to start: every ready issue is already claimed by a run or a kept branch.",
        )
    return Refusal(
        AnswerCode.NOTHING_READY,
        "Nothing is ready to start: no open issue carries the ready label.",
    )


def _wanted(queue: Queue, taken: Collection[str]) -> str | Refusal:
    """The one issue that was asked for, if it may start."""
    if queue.wanted in taken:
        return Refusal(
            AnswerCode.NOTHING_READY,
            f"Issue {queue.wanted} is already claimed by a run or a kept branch.",
        )
    if queue.wanted not in (queue.ready or ()):
        return Refusal(
            AnswerCode.NOTHING_READY,
            f"Issue {queue.wanted} is not ready: it must be open and carry the ready label.",
        )
    return queue.wanted
