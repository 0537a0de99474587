"""Ship the Claude Code profile, so that a first project can start without a trip to the admin."""

from __future__ import annotations

from django.db import migrations


def add(apps, schema_editor):
    profile = apps.get_model("runs", "AgentProfile")
    settings = apps.get_model("runs", "Settings")
    claude, _ = profile.objects.get_or_create(
        name="Claude Code",
        defaults={
            "mode": "interactive",
            "argv": [
                "claude",
                "--permission-mode",
                "bypassPermissions",
                "--model",
                "{model}",
                "--effort",
                "{effort}",
                "{prompt}",
            ],
            "env": {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_MAX_RETRIES": "2"},
            "model_names": ["fable", "opus", "sonnet", "haiku"],
            "efforts": ["low", "medium", "high", "xhigh", "max"],
            "trust": "claude",
            "login_command": ["claude", "auth", "status"],
        },
    )
    row, _ = settings.objects.get_or_create(pk=1)
    if row.agent_id is None:
        row.agent_id = claude.pk
        row.save(update_fields=["agent"])


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_first")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
