"""Held runs remember when they were started again; starts are refused while an agent is held."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0048_watch_retry")]
    operations = [
        migrations.AddField(
            model_name="run",
            name="resumed_at",
            field=models.DateTimeField(
                blank=True, help_text="When it was last put into *starting* again.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="startrequest",
            name="answer",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "pending"),
                    ("started", "started"),
                    ("nothing_ready", "nothing_ready"),
                    ("at_cap", "at_cap"),
                    ("no_tracker", "no_tracker"),
                    ("not_ready", "not_ready"),
                    ("tracker_failed", "tracker_failed"),
                    ("seam_failed", "seam_failed"),
                    ("logged_out", "logged_out"),
                    ("no_program", "no_program"),
                    ("agent_held", "agent_held"),
                    ("start_failed", "start_failed"),
                    ("expired", "expired"),
                ],
                default="",
                max_length=20,
            ),
        ),
    ]
