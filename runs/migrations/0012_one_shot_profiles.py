"""Ship Claude Code in print mode and Codex: one-shot programs whose JSON lines are read."""

from __future__ import annotations

from django.db import migrations

CLAUDE = {
    "mode": "one_shot",
    "output": "claude_stream_json",
    "argv": [
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--permission-mode",
        "bypassPermissions",
        "--model",
        "{model}",
        "--effort",
        "{effort}",
        "{prompt}",
    ],
    "resume_argv": ["claude", "--resume", "{session}"],
    "env": {
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
    "model_names": ["fable", "opus", "sonnet", "haiku"],
    "efforts": ["low", "medium", "high", "xhigh", "max"],
    "trust": "claude",
    "login_command": ["claude", "auth", "status"],
}
CODEX = {
    "mode": "one_shot",
    "output": "codex_exec_json",
    "argv": [
        "codex",
        "exec",
        "--json",
        "--dangerously-bypass-approvals-and-sandbox",
        "-c",
        "check_for_update_on_startup=false",
        "-c",
        "analytics.enabled=false",
        "--model",
        "{model}",
        "-c",
        "model_reasoning_effort={effort}",
        "{prompt}",
    ],
    "resume_argv": ["codex", "resume", "{session}"],
    "env": {},
    "model_names": ["gpt-6.1-sol", "gpt-6.1-terra", "gpt-6-astra", "gpt-6-luna"],
    "efforts": ["low", "medium", "high", "xhigh", "max"],
    "login_command": ["codex", "login", "status"],
}


def add(apps, schema_editor):
    profile = apps.get_model("runs", "AgentProfile")
    for name, fields in (("Claude Code (print)", CLAUDE), ("Codex", CODEX)):
        profile.objects.get_or_create(name=name, defaults=fields)


class Migration(migrations.Migration):
    dependencies = [("runs", "0011_agent_told")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
