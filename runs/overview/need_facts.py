"""What the overview knows that may need a person, as facts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from runs.core.states import Outcome, ProjectState, Trouble
from runs.gates.level_rules import Level
from runs.groups.stall_rules import Fate


@dataclass(frozen=True, slots=True)
class HostNeeds:
    """A host that has given no sign of life since then, and how many runs it has."""

    id: int
    name: str
    runs: int
    since: str = ""
    at: datetime | None = None


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
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class LimitNeeds:
    """A limit of this day that is reached: of one project, or of all, whose `id` is 0."""

    id: int
    name: str
    what: str
    numbers: str
    day: str = ""


@dataclass(frozen=True, slots=True)
class WaitNeeds:
    """A run that waits for a person: for what, since when, and what its agent said.

    `is_at_gates`: its gates passed, and a person says whether it is accepted; its budget rests.
    `is_closed`: its issue was closed, and a person says whether it goes on; it works meanwhile.
    """

    id: int
    title: str
    what: str
    since: str = ""
    note: str = ""
    advice: str = ""
    at: datetime | None = None
    is_at_gates: bool = False
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class WatchNeeds:
    """The newest watch session of a project, which has ended.

    `is_stalled`: Resume goes on. `is_seen`: somebody opened it long enough ago, or dismissed it.
    `follow_up`: the issue that was made of its failed run level. `repeat`: the number of its newest
    validation where a person asked for it, and `is_mended` whether that one is at work or has passed.
    """

    id: int
    code: int
    reason: str
    is_seen: bool = False
    is_stalled: bool = False
    follow_up: str = ""
    repeat: int | None = None
    is_mended: bool = False


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
    last_failure: int = 0
    unpushed: int = 0
    parked: int = 0
    watch: WatchNeeds | None = None
    groups: Sequence[GroupNeeds] = ()
    workflows: Sequence[WorkflowNeeds] = ()


@dataclass(frozen=True, slots=True)
class PullNeeds:
    """An open pull request, or one that was closed unmerged while its issue stays claimed.

    `url` is where it is reviewed, empty for our own pages. `red`: which of its checks failed, where
    labsite does not send them back to the agent any more; or how the project's own failed.
    """

    project: int
    name: str
    number: int
    title: str
    url: str = ""
    is_closed: bool = False
    red: str = ""


@dataclass(frozen=True, slots=True)
class RunNeeds:
    """A run that has ended.

    `is_seen`: somebody opened it long enough ago, or dismissed it. `is_retried`: a later run of
    the same issue has started. `project`: its id and name. `attempts`: how often its work went
    through the gates. `level`: how it stands towards the run level, where that needs somebody.
    `unclosed_since`: since when its issue should be closed and is not.
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
    attempts: int = 0
    level: Level | None = None
    unclosed_since: str = ""

    @property
    def is_stopped_at_gate(self) -> bool:
        """Whether a gate failed for the last time."""
        is_gate = self.reason.startswith(("gate ", "gates: ", "not reviewed"))
        return bool(self.attempts) and self.outcome == Outcome.FAILED and is_gate


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that the overview knows."""

    is_late: bool = False
    late_since: datetime | None = None
    waits: Sequence[WaitNeeds] = ()
    hosts: Sequence[HostNeeds] = ()
    agents: Sequence[AgentNeeds] = ()
    limits: Sequence[LimitNeeds] = ()
    projects: Sequence[ProjectNeeds] = ()
    pulls: Sequence[PullNeeds] = ()
    runs: Sequence[RunNeeds] = ()
