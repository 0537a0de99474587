# What ended badly more than a day ago had left the list already, so it does not come back.

from datetime import timedelta

from django.db import migrations, models
from django.db.models import F
from django.utils import timezone

UNSEEN = (
    models.Q(("seen_until", None))
    & models.Q(("outcome", ""), _negated=True)
    & (
        models.Q(("outcome__in", ["died", "timed_out", "failed", "rejected"]))
        | models.Q(("warning", ""), _negated=True)
    )
)


def forget_what_is_old(apps, schema):
    before = timezone.now() - timedelta(days=1)
    for name in ("Run", "WatchSession"):
        rows = apps.get_model("runs", name).objects.filter(ended_at__lt=before)
        rows.update(seen_until=F("ended_at"))


class Migration(migrations.Migration):
    dependencies = [("runs", "0055_stopped_and_origin_warning")]

    operations = [
        migrations.AddField(
            model_name="run",
            name="budget_seconds",
            field=models.PositiveIntegerField(
                blank=True, help_text="The budget that was in force when it ended.", null=True
            ),
        ),
        *(
            migrations.AddField(
                model_name=name,
                name="seen_until",
                field=models.DateTimeField(
                    blank=True,
                    help_text="Until when it stands under Needs you; empty: until somebody has "
                    "opened it.",
                    null=True,
                ),
            )
            for name in ("run", "watchsession")
        ),
        migrations.RunPython(forget_what_is_old, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(condition=UNSEEN, fields=["-id"], name="run_unseen"),
        ),
    ]
