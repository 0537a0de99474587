from django.db import migrations, models

import runs.core.states


class Migration(migrations.Migration):
    dependencies = [("runs", "0090_loop_burn_down")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="allowed_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="Who said that it goes on though its issue was closed.",
                max_length=150,
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="on_closed_issue",
            field=models.CharField(
                choices=[
                    ("go_on", "its run goes on"),
                    ("ask", "its run goes on, and you are asked"),
                    ("stop", "its run is stopped"),
                ],
                db_default="go_on",
                default=runs.core.states.ClosedIssue["GO_ON"],
                help_text="While an agent works on an issue that is closed elsewhere. You are told in each case. Asked means under Needs you, until you answer. A run that is stopped keeps worktree and branch.",
                max_length=10,
                verbose_name="when somebody closes its issue",
            ),
        ),
    ]
