"""The closed word lists of the product: what a run can be, how it can end, what is told.

Imported everywhere, imports nothing of ours. The words are the glossary's.
"""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    """Where a run stands.

    *Starting* holds the issue and a slot before anything exists on disk. *Checking*: its agent says
    that it is done, and the gates of its project prove it; session and slot stay, the budget rests.
    *Held* keeps issue, branch and worktree while the agent's account cannot be used: no session, no
    slot, the budget rests.
    """

    STARTING = "starting"
    WORKING = "working"
    CHECKING = "checking"
    HELD = "held"
    ENDED = "ended"


class Trouble(StrEnum):
    """Why the service behind an agent refuses every call: the account's trouble, never the issue's."""

    NONE = ""
    LIMIT = "limit"
    OVERLOAD = "overload"
    LOGIN = "login"
    CREDIT = "credit"
    MODEL = "model"


class Wait(StrEnum):
    """What a working run waits for that only a person can give; empty while it works.

    *Question*: the program asks something with choices. *Idle*: its turn ended and nothing is
    delivered; *error*: an error ended it. *Quiet*: its screen has not changed for long.
    """

    NONE = ""
    PERMISSION = "permission"
    QUESTION = "question"
    IDLE = "idle"
    ERROR = "error"
    QUIET = "quiet"


class Outcome(StrEnum):
    """How a run ended; written once, by `runs.lifecycle.outcomes.record` alone."""

    SUCCEEDED = "succeeded"
    NO_CHANGE = "no_change"
    OBSOLETE = "obsolete"
    DIED = "died"
    TIMED_OUT = "timed_out"
    REJECTED = "rejected"
    LIMIT_REACHED = "limit_reached"
    FAILED = "failed"
    OVER_LIMIT = "over_limit"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"

    @property
    def words(self) -> str:
        """The outcome as a person reads it."""
        return self.value.replace("_", " ")


# How a run ends well: delivered, or nothing had to be. What a person or a limit ended is neither well
# nor ill; a run that reached its own limit counts as a failure.
GOOD = (Outcome.SUCCEEDED, Outcome.NO_CHANGE, Outcome.OBSOLETE)
NEUTRAL = (Outcome.STOPPED, Outcome.INTERRUPTED, Outcome.OVER_LIMIT)

# What the pages of a run are called where they follow it: its story and its tabs.
RUN_PAGES = ("run", "talk", "term", "diff", "checks", "prompt", "raw")


class PersonState(StrEnum):
    """Where a session stands that a person drives. It has no outcome: nobody judges it."""

    STARTING = "starting"
    LIVE = "live"
    ENDED = "ended"


class ValidationState(StrEnum):
    """How a validation stands. *Nothing to check* counts as passed and is never shown as such."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    NOTHING = "nothing to check"
    CANCELLED = "cancelled"


class ValidationStep(StrEnum):
    """What a validation is at: its commands run, or an agent tries to mend what failed."""

    CHECKING = "checking"
    FIXING = "fixing"


class CompletionPolicy(StrEnum):
    """What a project believes as the end of a run: a pull request (or, where there are none, a
    commit that names the issue), or the gates, which prove it."""

    PULL_REQUEST = "pull_request"
    GATES = "gates"

    @property
    def label(self) -> str:
        return {"pull_request": "pull request", "gates": "gates"}[self.value]


class ClosedIssue(StrEnum):
    """What becomes of a run whose issue somebody closes while its agent works. People are told."""

    GO_ON = "go_on"
    ASK = "ask"
    STOP = "stop"

    @property
    def label(self) -> str:
        return {
            "go_on": "its run goes on",
            "ask": "it goes on, and you are asked",
            "stop": "its run is stopped",
        }[self.value]


class Gate(StrEnum):
    """The four proofs of the gate chain, in their order; the last one is about a whole session."""

    EVIDENCE = "evidence"
    CLEAN_ROOM = "clean_room"
    REVIEW = "review"
    RUN_LEVEL = "run_level"

    @property
    def words(self) -> str:
        return {
            "evidence": "Evidence",
            "clean_room": "Clean room",
            "review": "Review",
            "run_level": "Run level",
        }[self.value]


class GateTurn(StrEnum):
    """What the next tick does with a run that is *checking*; empty: an attempt is at work.

    *Telling*: its agent is being told what failed, or was when a process died over it. *Asking*: all
    gates passed, and a person has to say whether it is accepted.
    """

    NONE = ""
    BEGIN = "begin"
    DECIDED = "decided"
    TELLING = "telling"
    ASKING = "asking"


class AttemptState(StrEnum):
    """How one pass through the gates stands. *Error*: it could not be carried out to its end."""

    RUNNING = "running"
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    CANCELLED = "cancelled"


class JobKind(StrEnum):
    """What a job is about: of which table its subject is a row."""

    ATTEMPT = "attempt"
    CHECK_RUN = "check_run"
    AFTER_RUN = "after_run"


class LoopState(StrEnum):
    """Where a loop stands: a turn was ordered, none is, nothing is to be done, or it is over."""

    BETWEEN = "between"
    TURN = "turn"
    IDLE = "idle"
    ENDED = "ended"


class Claim(StrEnum):
    """What an agent says of its issue when it is done."""

    DONE = "done"
    NO_CHANGE = "no_change"
    OBSOLETE = "obsolete"


class RunKind(StrEnum):
    """Who asked for the run: a person's click or the automatic switch."""

    MANUAL = "manual"
    AUTO = "auto"


class WorktreeFate(StrEnum):
    """What the reap did with the worktree; *none* for adopted runs that never had one."""

    UNSETTLED = ""
    NONE = "none"
    KEPT = "kept"
    REMOVED = "removed"
    GONE = "gone"  # by somebody else: it was moved or removed before the reap


class ProjectState(StrEnum):
    """A project is usable once its reference repository is complete."""

    CLONING = "cloning"
    READY = "ready"
    FAILED = "failed"
    REMOVING = "removing"

    @property
    def not_ready(self) -> str:
        """Why nothing can be done in a project that is not ready."""
        if self is ProjectState.REMOVING:
            return "This project is being removed."
        return "This project has not been cloned yet."


class TrackerKind(StrEnum):
    """Where a project's issues are; each has an adapter in `trackers`."""

    BUILTIN = "builtin"
    GITEA = "gitea"
    GITHUB = "github"
    BEADS = "beads"


class ForgeKind(StrEnum):
    """The forges among the trackers; Forgejo speaks Gitea's API."""

    GITEA = TrackerKind.GITEA.value
    GITHUB = TrackerKind.GITHUB.value

    @property
    def label(self) -> str:
        return {"gitea": "Gitea or Forgejo", "github": "GitHub"}[self.value]


class Mirror(StrEnum):
    """What labsite writes on a tracker about its runs; never read again."""

    OFF = "off"
    STATUS = "status"
    COMMENTS = "comments"

    @property
    def label(self) -> str:
        return {
            "off": "nothing",
            "status": "status",
            "comments": "status and comments",
        }[self.value]


class AgentState(StrEnum):
    """What a one-shot agent's own lines say of it. *Interrupted*: it ended and said nothing of it."""

    UNKNOWN = ""
    WORKING = "working"
    RETRYING = "retrying"
    RATE_LIMITED = "rate_limited"
    NEEDS_LOGIN = "needs_login"
    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def words(self) -> str:
        """The state as a person reads it."""
        return self.value.replace("_", " ")

    @property
    def is_waiting(self) -> bool:
        """Whether the agent cannot work just now, through no doing of its own."""
        return self in (self.RETRYING, self.RATE_LIMITED, self.NEEDS_LOGIN)


class AgentMode(StrEnum):
    """Whether an agent's program stays open until it is ended, or ends by itself."""

    INTERACTIVE = "interactive"
    ONE_SHOT = "one_shot"


class OutputKind(StrEnum):
    """What an agent's program prints: a screen for people, or JSON lines that are read."""

    PLAIN = ""
    CLAUDE = "claude_stream_json"
    CODEX = "codex_exec_json"


class AnswerCode(StrEnum):
    """How the launch pass answered one start request; each door maps it to its own status."""

    PENDING = ""
    STARTED = "started"
    NOTHING_READY = "nothing_ready"
    AT_CAP = "at_cap"
    NO_HOST = "no_host"
    NO_TRACKER = "no_tracker"
    NOT_READY = "not_ready"
    TRACKER_FAILED = "tracker_failed"
    SEAM_FAILED = "seam_failed"
    LOGGED_OUT = "logged_out"
    NO_PROGRAM = "no_program"
    AGENT_HELD = "agent_held"
    CANNOT_GO_ON = "cannot_go_on"
    OVER_LIMIT = "over_limit"
    START_FAILED = "start_failed"
    EXPIRED = "expired"


class NoticeKind(StrEnum):
    """What a timeline entry tells; the pages choose a colour by it."""

    PROJECT_ADDED = "project.added"
    PROJECT_READY = "project.ready"
    PROJECT_FAILED = "project.failed"
    PROJECT_REMOVED = "project.removed"
    PROJECT_WARNED = "project.warned"
    PROJECT_RECOVERED = "project.recovered"
    ISSUE_CHANGED = "issue.changed"
    ISSUE_COMMENTED = "issue.commented"
    PULL_OPENED = "pull.opened"
    PULL_CHANGED = "pull.changed"
    PULL_COMMENTED = "pull.commented"
    PULL_MERGED = "pull.merged"
    RUN_STARTING = "run.starting"
    RUN_STEP = "run.step"
    RUN_STARTED = "run.started"
    RUN_ADOPTED = "run.adopted"
    RUN_OUTPUT = "run.output"
    RUN_TROUBLED = "run.troubled"
    RUN_WAITS = "run.waits"
    RUN_ANSWERED = "run.answered"
    RUN_ISSUE_CLOSED = "run.issue_closed"
    RUN_INTERRUPTED = "run.interrupted"
    RUN_GOES_ON = "run.goes_on"
    RUN_NEARS_LIMIT = "run.nears_limit"
    RUN_CHECKING = "run.checking"
    RUN_REENTERED = "run.reentered"
    GATE_STEP = "gate.step"
    GATE_PASSED = "gate.passed"
    GATE_FAILED = "gate.failed"
    CHECKS_CHANGED = "checks.changed"
    ISSUE_CLOSED = "issue.closed"
    LOOP_TURN = "loop.turn"
    LOOP_STEP = "loop.step"
    LOOP_GUIDED = "loop.guided"
    LOOP_CHECK_IN = "loop.check_in"
    RUN_HELD = "run.held"
    RUN_RESUMED = "run.resumed"
    RUN_ENDED = "run.ended"
    RUN_REAPED = "run.reaped"
    RUN_WARNED = "run.warned"
    START_REFUSED = "start.refused"
    SETTING_CHANGED = "setting.changed"
    PERSON_CHANGED = "person.changed"
    PERSON_IN = "person.in"
    PERSON_OUT = "person.out"
    PASSKEY_REFUSED = "passkey.refused"
    CLOCK_SET = "clock.set"
    AUTO_CHANGED = "auto.changed"
    AUTO_PAUSED = "auto.paused"
    STREAK_RESET = "streak.reset"
    NEED_DISMISSED = "need.dismissed"
    WATCH_OPENED = "watch.opened"
    WATCH_ASKED = "watch.asked"
    WATCH_IDLE = "watch.idle"
    WATCH_POLL_FAILED = "watch.poll_failed"
    WATCH_ENDED = "watch.ended"
    WATCH_FAILED = "watch.failed"
    GROUP_MADE = "group.made"
    GROUP_CLOSED = "group.closed"
    TASK_ADDED = "task.added"
    TASK_CLAIMED = "task.claimed"
    TASK_COMPLETED = "task.completed"
    TASK_HANDED_BACK = "task.handed_back"
    TASK_RELEASED = "task.released"
    TASK_SENT_BACK = "task.sent_back"
    MONITOR_STARTED = "monitor.started"
    MONITOR_PROGRESS = "monitor.progress"
    MONITOR_CHECKPOINT = "monitor.checkpoint"
    MONITOR_INVESTIGATE = "monitor.investigate"
    MONITOR_WARNED = "monitor.warned"
    MONITOR_ENDED = "monitor.ended"
    WORKFLOW_STARTED = "workflow.started"
    WORKFLOW_PHASE = "workflow.phase"
    WORKFLOW_HELD = "workflow.held"
    WORKFLOW_ENDED = "workflow.ended"
    WORK_DISCARDED = "work.discarded"
    WORK_RESCUED = "work.rescued"
    WORK_RESTORED = "work.restored"
    WORK_SWEPT = "work.swept"
    DISK_WARNED = "disk.warned"
    SESSION_STARTED = "session.started"
    SESSION_ENDED = "session.ended"
    VALIDATION_BEGAN = "validation.began"
    VALIDATION_STEP = "validation.step"
    VALIDATION_ENDED = "validation.ended"
    VALIDATION_PASSED = "validation.passed"
    VALIDATION_FAILED = "validation.failed"
    VALIDATION_FIXED = "validation.fixed"
    LOGIN_CHANGED = "login.changed"
    AGENT_HELD = "agent.held"
    AGENT_HELD_STILL = "agent.held_still"
    AGENT_RELEASED = "agent.released"
    LIMIT_REACHED = "limit.reached"
    DELIVERY_FAILED = "delivery.failed"
    HOST_CHANGED = "host.changed"
    HOST_SILENT = "host.silent"
    HOST_BACK = "host.back"
    SESSIONS_LOST = "sessions.lost"

    @property
    def is_news(self) -> bool:
        """Whether pages of many runs tell it.

        The steps of one run, validation or task group and the idleness of a session are told on
        their own pages, and who logged in in the audit only.
        """
        return self not in (
            NoticeKind.RUN_STEP,
            NoticeKind.RUN_OUTPUT,
            NoticeKind.GATE_STEP,
            NoticeKind.LOOP_TURN,
            NoticeKind.LOOP_STEP,
            NoticeKind.WATCH_IDLE,
            NoticeKind.VALIDATION_STEP,
            NoticeKind.TASK_ADDED,
            NoticeKind.TASK_CLAIMED,
            NoticeKind.TASK_COMPLETED,
            NoticeKind.TASK_HANDED_BACK,
            NoticeKind.MONITOR_PROGRESS,
            NoticeKind.MONITOR_WARNED,
            NoticeKind.PERSON_IN,
            NoticeKind.PERSON_OUT,
        )


# What is told of hosts leads to their page.
OF_HOSTS = frozenset({NoticeKind.HOST_CHANGED, NoticeKind.HOST_SILENT, NoticeKind.HOST_BACK})
