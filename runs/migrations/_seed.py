"""What a new folder starts with: the settings' row and three agent profiles that need only a log-in.

Django takes files whose name begins with an underscore for no migration.
"""

from __future__ import annotations

EFFORTS = ["low", "medium", "high", "xhigh", "max"]
OF_CLAUDE = {
    "model_names": ["fable", "opus", "sonnet", "haiku"],
    "efforts": EFFORTS,
    "resume_argv": ["claude", "--resume", "{session}"],
    "trust": "claude",
    "login_command": ["claude", "auth", "status"],
}
CHOSEN = ["--model", "{model}", "--effort", "{effort}", "{prompt}"]
QUIET = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
CLAUDE = {
    **OF_CLAUDE,
    "name": "Claude Code",
    "mode": "interactive",
    "argv": [
        "claude",
        *("--settings", "{settings}", "--session-id", "{session}"),
        *("--permission-mode", "bypassPermissions", *CHOSEN),
    ],
    "env": {"DISABLE_AUTOUPDATER": "1"},
}
PRINTED = {
    **OF_CLAUDE,
    "name": "Claude Code (print)",
    "mode": "one_shot",
    "output": "claude_stream_json",
    "argv": [
        "claude",
        *("-p", "--output-format", "stream-json", "--verbose"),
        *("--permission-mode", "bypassPermissions", *CHOSEN),
    ],
    "env": QUIET,
}
CODEX = {
    "name": "Codex",
    "mode": "one_shot",
    "output": "codex_exec_json",
    "argv": [
        *("codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox"),
        *("-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false"),
        *("--model", "{model}", "-c", "model_reasoning_effort={effort}", "{prompt}"),
    ],
    "resume_argv": ["codex", "resume", "{session}"],
    "model_names": ["gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-astra", "gpt-6-luna"],
    "efforts": EFFORTS,
    "login_command": ["codex", "login", "status"],
}


def add(apps, schema_editor):
    first = profiles(apps)
    apps.get_model("runs", "Settings").objects.create(pk=1, agent=first)


def profiles(apps):
    """Store the shipped profiles; the answer is the one that new sessions use."""
    create = apps.get_model("runs", "AgentProfile").objects.create
    first, *_ = [create(**fields) for fields in (CLAUDE, PRINTED, CODEX)]
    return first
