from django.db import migrations, models

import runs.core.states
import runs.settings.committers


class Migration(migrations.Migration):
    dependencies = [("runs", "0090_loop_burn_down")]

    operations = [
        *(
            migrations.AddField(
                model_name=name,
                name="committer",
                field=models.CharField(
                    blank=True,
                    db_default="",
                    default="",
                    help_text=told,
                    max_length=205,
                    validators=[runs.settings.committers.check_committer],
                    verbose_name="who commits",
                ),
            )
            for name, told in (
                (
                    "settings",
                    "Author and committer of what agents commit, such as Anna Berg <anna@example.org>. Empty: as git is set up for the user that runs labsite, and labsite where it knows nobody.",
                ),
                (
                    "project",
                    "Author and committer of what the agents of this project commit, such as Anna Berg <anna@example.org>.",
                ),
            )
        ),
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
                    ("ask", "it goes on, and you are asked"),
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
