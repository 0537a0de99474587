"""Give Claude Code labsite's settings file and a session id, and no limit of tries of our own.

Every list that starts `claude` interactively without settings of its own gets both, so the shipped
one and those that were changed a little. Two tries made an overload of a few seconds the end of a
turn; only profiles whose environment is as it was shipped are changed.
"""

from __future__ import annotations

from django.db import migrations

MORE = ["--settings", "{settings}", "--session-id", "{session}"]
RESUME = ["claude", "--resume", "{session}"]
OWN = {"--settings", "--session-id", "--resume", "-r", "--continue", "-c", "-p", "--print"}
TRIES = {"CLAUDE_CODE_MAX_RETRIES": "2"}
SHIPPED = (
    {"DISABLE_AUTOUPDATER": "1"},
    {
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    },
)


def change(apps, schema_editor):
    for profile in apps.get_model("runs", "AgentProfile").objects.filter(trust="claude"):
        argv, changed = list(profile.argv), []
        has_own = any(str(word).partition("=")[0] in OWN for word in argv)
        if profile.mode == "interactive" and argv[:1] == ["claude"] and not has_own:
            profile.argv = [argv[0], *MORE, *argv[1:]]
            profile.resume_argv = profile.resume_argv or RESUME
            changed += ["argv", "resume_argv"]
        if profile.env in [{**shipped, **TRIES} for shipped in SHIPPED]:
            profile.env = {name: text for name, text in profile.env.items() if name not in TRIES}
            changed += ["env"]
        if changed:
            profile.save(update_fields=changed)


class Migration(migrations.Migration):
    dependencies = [("runs", "0045_agents_unattended")]
    operations = [migrations.RunPython(change, migrations.RunPython.noop)]
