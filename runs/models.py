"""All tables, by the name under which Django and the rest of the product import them."""

from __future__ import annotations

from runs.agents.agent import AgentProfile, LoginAttempt
from runs.agents.trial_models import AgentTrial
from runs.core.host import Due, Host, Tick
from runs.dispatch.start import StartRequest, StartWait
from runs.forges.forge import Forge
from runs.forges.hook import HookDelivery
from runs.forges.quota_models import Asked, Quota, QuotaHour
from runs.groups.group import Task, TaskGroup, Worker
from runs.groups.monitor import Checkpoint, Monitor, MonitorPreset
from runs.issues.sent import Sent
from runs.kept.models import Discarding, Parked, Rescue, Term
from runs.lifecycle.models import Run
from runs.manual.models import ManualSession
from runs.notices.delivery import Delivery, NoticeAddress, Outbox
from runs.overview.visit import Visit
from runs.people.access import ApiToken, Passkey, Tries
from runs.projects.models import Project
from runs.settings.models import Settings
from runs.timeline.models import Notice
from runs.validation.validation import Fixer, Validation
from runs.watch.watch import WatchSession
from runs.workflows.workflow import Workflow, WorkflowPhase

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
