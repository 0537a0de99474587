"""Whoever comes back is told of agents that were held, found by the index of pauses."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0049_holds")]
    operations = [
        migrations.RemoveIndex(model_name="notice", name="notice_pause"),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                condition=models.Q(("kind__in", ("auto.paused", "agent.held"))),
                fields=["-at"],
                name="notice_pause",
            ),
        ),
    ]
