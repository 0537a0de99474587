"""Encrypt the environment of agent profiles, which may hold keys."""

from __future__ import annotations

import json

from django.db import migrations

import runs.models.secret
from runs.models.secret import decrypted, encrypted


def _convert(schema_editor, change):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT id, env FROM runs_agentprofile")
        for pk, stored in cursor.fetchall():
            cursor.execute(
                "UPDATE runs_agentprofile SET env = %s WHERE id = %s", [change(stored or ""), pk]
            )


def _hide(stored):
    """Plain JSON as found; what is encrypted already stays, should this run twice."""
    if not stored or decrypted(stored) is not None:
        return stored
    return encrypted(stored) if json.loads(stored) else ""


def hide(apps, schema_editor):
    _convert(schema_editor, _hide)


def show(apps, schema_editor):
    _convert(schema_editor, lambda stored: (decrypted(stored) if stored else "") or "{}")


class Migration(migrations.Migration):
    dependencies = [("runs", "0003_run_of_issue")]
    operations = [
        migrations.AlterField(
            model_name="agentprofile",
            name="env",
            field=runs.models.secret.EncryptedJSONField(
                blank=True,
                default=dict,
                help_text="Extra variables as a JSON object of strings. They are stored encrypted; a value that is saved is shown as •••• from then on and stays as it is while that stands there.",
                verbose_name="environment",
            ),
        ),
        migrations.RunPython(hide, show),
    ]
