"""The live parts of each page: the id of each element, and the template that renders it.

A name without a folder is one of `templates/_partials`.
"""

from __future__ import annotations

CHROME = {
    "nav-projects": "_nav_projects",
    "nav-live": "_nav_live",
    "tick-age": "_tick_age",
    "worker-late": "_worker_late",
    "logged-out": "_logged_out",
}
OVERVIEW = {
    "stats": "_stats",
    "watching": "_watching",
    "needs-you": "_needs_you",
    "running": "_running",
    "up-next": "_up_next",
    "activity": "_activity",
    "projects": "_projects",
    "start-menu": "_start_menu",
}
PROJECT = {
    "project-head": "_project_head",
    "start-control": "_start_control",
    "project-state": "_project_state",
    "project-auto": "_project_auto",
    "project-watch": "_project_watch",
    "project-groups": "_project_groups",
    "project-tracker": "_project_tracker",
    "project-facts": "_project_facts",
    "project-fetch": "_project_fetch",
    "hook-deliveries": "_hook_deliveries",
    "project-running": "_project_running",
    "project-sessions": "_project_sessions",
    "project-ready": "_project_ready",
    "project-recent": "_project_recent",
    "project-activity": "_project_activity",
    "parked-count": "_parked_count",
}
RUN = {
    "run-head": "_run_head",
    "run-act": "_run_act",
    "attach-box": "_attach",
    "steps": "_steps",
    "budget": "_budget",
    "agent-box": "_agent",
    "timeline": "_timeline",
    "prompt": "_prompt",
    "exit": "_exit",
}
WATCH = {
    "watch-head": "watch/_head",
    "watch-act": "watch/_act",
    "watch-state": "watch/_state",
    "watch-validations": "watch/_validations",
    "watch-runs": "watch/_runs",
    "watch-entries": "watch/_entries",
}
# Parts with a form or for one person alone: a push, which is the same for many, leaves them out and
# brings what is live within them.
PROJECT_ASKED = {
    "project-driven": "_project_driven",
    "watch-new": "_project_new_watch",
    "webhook": "_project_hook",
}
SEEN = {"terminal": "_terminal", "changes": "_changes"}
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
SETTINGS = {"agents": "agents/_cards", "limits": "_limits", "turns": "_turns"}
SETTINGS_ASKED = {"settings-form": "_settings_form"}
RUNS = {"runs-rows": "_runs_rows"}
AUDIT = {"audit-rows": "_audit_rows"}
WATCHES = {"watch-rows": "watch/_rows"}
OF = {
    "overview": OVERVIEW,
    "needs": {"needs-you": "_needs_you"},
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
