"""What is remembered. Fields, constraints and queries; no rule and no act lives here."""

from __future__ import annotations

from runs.models.access import ApiToken, Passkey, Tries
from runs.models.agent import AgentProfile, LoginAttempt
from runs.models.delivery import Delivery, NoticeAddress, Outbox
from runs.models.host import Due, Host, Tick
from runs.models.kept import Parked, Rescue
from runs.models.manual import ManualSession
from runs.models.project import Project
from runs.models.run import Run
from runs.models.settings import Settings
from runs.models.start import StartRequest
from runs.models.timeline import Notice
from runs.models.visit import Visit

__all__ = [
    "AgentProfile",
    "ApiToken",
    "Delivery",
    "Due",
    "Host",
    "LoginAttempt",
    "ManualSession",
    "Notice",
    "NoticeAddress",
    "Outbox",
    "Parked",
    "Passkey",
    "Project",
    "Rescue",
    "Run",
    "Settings",
    "StartRequest",
    "Tick",
    "Tries",
    "Visit",
]
