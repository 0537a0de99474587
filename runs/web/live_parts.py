"""The live parts of each page: the id of each element, and the template that renders it."""

from __future__ import annotations

CHROME = {
    "nav-projects": "web/_nav_projects",
    "nav-live": "web/_nav_live",
    "tick-age": "web/_tick_age",
    "worker-late": "web/_worker_late",
    "logged-out": "web/_logged_out",
}
OVERVIEW = {
    "stats": "overview/_stats",
    "watching": "overview/_watching",
    "needs-you": "overview/_needs_you",
    "running": "overview/_running",
    "up-next": "overview/_up_next",
    "activity": "overview/_activity",
    "projects": "overview/_projects",
    "start-menu": "overview/_start_menu",
}
PROJECT = {
    "project-head": "projects/_head",
    "start-control": "dispatch/_start_control",
    "project-state": "projects/_state",
    "project-auto": "dispatch/_auto",
    "project-watch": "watch/_project_watch",
    "project-groups": "groups/_project_groups",
    "project-tracker": "forges/_project_tracker",
    "project-facts": "projects/_facts",
    "project-fetch": "projects/_fetch",
    "hook-deliveries": "forges/_hook_deliveries",
    "project-running": "projects/_running",
    "project-sessions": "projects/_sessions",
    "project-ready": "projects/_ready",
    "project-recent": "projects/_recent",
    "project-activity": "projects/_activity",
    "parked-count": "kept/_parked_count",
}
RUN = {
    "run-head": "lifecycle/_head",
    "run-act": "lifecycle/_act",
    "attach-box": "lifecycle/_attach",
    "steps": "lifecycle/_steps",
    "budget": "lifecycle/_budget",
    "agent-box": "lifecycle/_agent",
    "timeline": "lifecycle/_timeline",
    "prompt": "lifecycle/_prompt",
    "exit": "lifecycle/_exit",
}
WATCH = {
    "watch-head": "watch/_head",
    "watch-act": "watch/_act",
    "watch-state": "watch/_state",
    "watch-validations": "validation/_validations",
    "watch-runs": "watch/_runs",
    "watch-entries": "watch/_entries",
}
# Parts with a form or for one person alone: a push, which is the same for many, leaves them out and
# brings what is live within them.
PROJECT_ASKED = {
    "project-driven": "projects/_driven",
    "watch-new": "projects/_new_watch",
    "webhook": "forges/_project_hook",
}
SEEN = {"terminal": "lifecycle/_terminal", "changes": "lifecycle/_changes"}
GROUP = {
    "group-head": "groups/_head",
    "group-progress": "groups/_progress",
    "group-blockers": "groups/_blockers",
    "group-checkpoints": "groups/_checkpoints",
    "group-tasks": "groups/_tasks",
    "group-result": "groups/_result",
    "group-monitor": "groups/_monitor",
    "group-workers": "groups/_workers",
    "group-end": "groups/_end",
    "group-feed": "groups/_feed",
}
SETTINGS = {"agents": "agents/_cards", "limits": "projects/_limits", "turns": "projects/_turns"}
SETTINGS_ASKED = {"settings-form": "projects/_settings_form"}
RUNS = {"runs-rows": "lifecycle/_rows"}
AUDIT = {"audit-rows": "timeline/_audit_rows"}
WATCHES = {"watch-rows": "watch/_rows"}
OF = {
    "overview": OVERVIEW,
    "needs": {"needs-you": "overview/_needs_you"},
    "project": PROJECT,
    "watch": WATCH,
    "group": GROUP,
    "settings": SETTINGS,
    "trial": {"trial": "agents/_trial"},
    "runs": RUNS,
    "audit": AUDIT,
    "watches": WATCHES,
}
WITHIN = {"project-driven": "project-sessions", "webhook": "hook-deliveries"}
ASKED = {"project": PROJECT_ASKED, "settings": SETTINGS_ASKED}
