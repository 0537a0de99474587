"""Task groups in words: what a task, a monitor and a checkpoint can be, and a monitor's options (RUNE)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from trackers import plain

# What is in a name becomes a folder or a file, so nothing else is let in.
NAME_CHARACTERS = 128
SUBJECT_CHARACTERS = 256
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}", re.ASCII)

MILESTONES = (25, 50, 75, 100)


class TaskStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"

    @property
    def words(self) -> str:
        """The status as a person reads it."""
        return self.value.replace("_", " ")


class Decision(StrEnum):
    """What a checkpoint advises; ADJUST and ESCALATE are not among them."""

    CONTINUE = "CONTINUE"
    INVESTIGATE = "INVESTIGATE"
    COMPLETE = "COMPLETE"


class MonitorState(StrEnum):
    """How a monitor stands. Only the first is no end."""

    RUNNING = "running"
    COMPLETE = "complete"
    TIMED_OUT = "timed out"
    ERROR = "error"
    STOPPED = "stopped"


class PresetName(StrEnum):
    """The presets that the product comes with."""

    REVIEW = "review"
    AUDIT = "audit"
    WORK = "work"
    MEND = "mend"
    PLAN = "plan"
    FORGE = "forge"
    ARC = "arc"


@dataclass(frozen=True, slots=True)
class Options:
    """How a monitor watches. `timeout` None: none at all; `release` None: it only warns.

    `label` is put before every message.
    """

    label: str = "Monitor"
    poll: timedelta = timedelta(seconds=30)
    stale: timedelta = timedelta(seconds=300)
    timeout: timedelta | None = None
    release: timedelta | None = None
    has_checkpoints: bool = False


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """One task as it was listed. `claim` counts how often it was taken: who takes it starts anew.

    A task that follows a run stands for an issue, which nobody gives back by itself.
    """

    pk: int
    key: str
    subject: str
    status: TaskStatus
    claim: int = 0
    is_releasable: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """What a monitor's end tells, and nothing else: keys in the order of the tasks."""

    completed: tuple[str, ...]
    incomplete: tuple[str, ...]
    timed_out: bool


def split(tasks: Iterable[TaskFacts], *, timed_out: bool) -> Result:
    """The final listing by status: whatever is not completed is incomplete."""
    listed = list(tasks)
    return Result(
        tuple(t.key for t in listed if t.status is TaskStatus.COMPLETED),
        tuple(t.key for t in listed if t.status is not TaskStatus.COMPLETED),
        timed_out,
    )


def is_name(text: str) -> bool:
    """Whether a group, a task or a worker may be called so."""
    return _NAME.fullmatch(text) is not None


def subject_of(text: str, key: str) -> str:
    """A task's subject: one line, cut to 256 characters; an empty one names the task."""
    said = " ".join(plain.line(text).split())[:SUBJECT_CHARACTERS]
    return said or f"Task {key}"


def minutes(length: timedelta) -> str:
    """A threshold in minutes as the messages print it: 5, 10, 0.5, 0.33."""
    return f"{round(length / timedelta(minutes=1), 2):g}"


@dataclass(frozen=True, slots=True)
class Preset:
    """Options under a name. *Unique*: findings are their worker's own, so no task goes back."""

    options: Options
    is_unique: bool = False


def _preset(
    label: str,
    timeout: int | None = None,
    release: int | None = None,
    *,
    has_checkpoints: bool = False,
    is_unique: bool = False,
) -> Preset:
    """Times in minutes; what every preset has in common are the defaults."""
    times = [None if m is None else timedelta(minutes=m) for m in (timeout, release)]
    options = Options(
        label=label, timeout=times[0], release=times[1], has_checkpoints=has_checkpoints
    )
    return Preset(options, is_unique)


# As they are shipped. What is in force is in the database, where an admin
# tunes it; one that was removed there comes back as it is here.
SHIPPED: Mapping[PresetName, Preset] = {
    PresetName.REVIEW: _preset("Review", 10, is_unique=True),
    PresetName.AUDIT: _preset("Audit", 15, is_unique=True),
    PresetName.WORK: _preset("Work", 30, 10, has_checkpoints=True),
    PresetName.MEND: _preset("Mend", 15, 10),
    PresetName.PLAN: _preset("Plan Research"),
    PresetName.FORGE: _preset("Forge", None, 5),
    PresetName.ARC: _preset("Arc: {phase}"),
}
