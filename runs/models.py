"""All tables, by the name under which Django and the rest of the product import them."""

from __future__ import annotations

from runs.agents.models import AgentProfile, AgentTrial, LoginAttempt
from runs.conversation.models import RecordToKeep
from runs.core.host import Due, Host, Tick
from runs.dispatch.models import StartRequest, StartWait
from runs.followups.models import PullChecks
from runs.forges.hook_models import HookDelivery
from runs.forges.models import Asked, Forge, Quota, QuotaHour
from runs.gates.models import Attempt, CheckRun, Review, Reviewer
from runs.groups.models import Checkpoint, Monitor, MonitorPreset, Task, TaskGroup, Worker
from runs.hosts.models import HostInvite
from runs.issues.models import Sent
from runs.jobs.models import Job
from runs.kept.models import Discarding, Parked, Rescue, Term
from runs.lifecycle.models import Run
from runs.loops.models import (
    Loop,
    LoopGuidance,
    LoopIssue,
    LoopMemory,
    LoopRole,
    LoopTask,
    LoopTerms,
    LoopTurn,
)
from runs.manual.models import ManualSession
from runs.notices.models import (
    Delivery,
    Looking,
    NoticeAddress,
    NoticeTimes,
    Outbox,
    PushAct,
    PushKeys,
)
from runs.overview.models import HiddenNeed, Visit
from runs.people.models import ApiToken, Passkey, Tries
from runs.projects.models import Project
from runs.settings.models import Settings
from runs.setup.file_models import ProjectFile, RetiredFile
from runs.spending.models import ReachedLimit
from runs.timeline.models import Notice
from runs.validation.models import Fixer, Validation
from runs.validation.spec_models import CheckCommand, CheckDefaults, CheckTerms
from runs.watch.models import WatchSession
from runs.workflows.models import Workflow, WorkflowPhase

__all__ = [
    "AgentProfile",
    "AgentTrial",
    "ApiToken",
    "Asked",
    "Attempt",
    "CheckCommand",
    "CheckDefaults",
    "CheckRun",
    "CheckTerms",
    "Checkpoint",
    "Delivery",
    "Discarding",
    "Due",
    "Fixer",
    "Forge",
    "HiddenNeed",
    "HookDelivery",
    "Host",
    "HostInvite",
    "Job",
    "LoginAttempt",
    "Looking",
    "Loop",
    "LoopGuidance",
    "LoopIssue",
    "LoopMemory",
    "LoopRole",
    "LoopTask",
    "LoopTerms",
    "LoopTurn",
    "ManualSession",
    "Monitor",
    "MonitorPreset",
    "Notice",
    "NoticeAddress",
    "NoticeTimes",
    "Outbox",
    "Parked",
    "Passkey",
    "Project",
    "ProjectFile",
    "PullChecks",
    "PushAct",
    "PushKeys",
    "Quota",
    "QuotaHour",
    "ReachedLimit",
    "RecordToKeep",
    "Rescue",
    "RetiredFile",
    "Review",
    "Reviewer",
    "Run",
    "Sent",
    "Settings",
    "StartRequest",
    "StartWait",
    "Task",
    "TaskGroup",
    "Term",
    "Tick",
    "Tries",
    "Validation",
    "Visit",
    "WatchSession",
    "Worker",
    "Workflow",
    "WorkflowPhase",
]
