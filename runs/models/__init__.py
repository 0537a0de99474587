"""What is remembered. Fields, constraints and queries; no rule and no act lives here."""

from __future__ import annotations

from runs.models.access import ApiToken, Passkey, Tries
from runs.models.agent import AgentProfile, LoginAttempt
from runs.models.delivery import Delivery, NoticeAddress, Outbox
from runs.models.forge import Forge
from runs.models.group import Task, TaskGroup, Worker
from runs.models.hook import HookDelivery
from runs.models.host import Due, Host, Tick
from runs.models.kept import Discarding, Parked, Rescue, Term
from runs.models.manual import ManualSession
from runs.models.monitor import Checkpoint, Monitor, MonitorPreset
from runs.models.project import Project
from runs.models.quota import Asked, Quota, QuotaHour
from runs.models.run import Run
from runs.models.sent import Sent
from runs.models.settings import Settings
from runs.models.start import StartRequest, StartWait
from runs.models.timeline import Notice
from runs.models.trial import AgentTrial
from runs.models.validation import Fixer, Validation
from runs.models.visit import Visit
from runs.models.watch import WatchSession
from runs.models.workflow import Workflow, WorkflowPhase

__all__ = [
    "AgentProfile",
    "AgentTrial",
    "ApiToken",
    "Asked",
    "Checkpoint",
    "Delivery",
    "Discarding",
    "Due",
    "Fixer",
    "Forge",
    "HookDelivery",
    "Host",
    "LoginAttempt",
    "ManualSession",
    "Monitor",
    "MonitorPreset",
    "Notice",
    "NoticeAddress",
    "Outbox",
    "Parked",
    "Passkey",
    "Project",
    "Quota",
    "QuotaHour",
    "Rescue",
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
