"""What rows of before get in the columns that came with gates, loops and hosts. Each is safe to repeat."""

from django.conf import settings
from django.db import migrations

STEP = 2000


def took(apps, schema_editor):
    """How long the runs took that have ended: as `Run.age` counts."""
    rows = apps.get_model("runs", "Run").objects
    columns = ("pk", "started_at", "ended_at", "held_at", "budget_stopped_at", "rested_seconds")
    wanted = rows.exclude(outcome="").filter(started_at__isnull=False, took_seconds=None)
    last = 0
    while found := list(wanted.filter(pk__gt=last).order_by("pk").values_list(*columns)[:STEP]):
        for pk, started, ended, *stops, rested in found:
            until = min([ended, *(at for at in stops if at is not None)])
            seconds = max(0, int((until - started).total_seconds()) - rested)
            rows.filter(pk=pk).update(took_seconds=min(seconds, 2**31 - 1))
        last = found[-1][0]


def name_host(apps, schema_editor):
    """What was counted as kept so far lies on the one host that there was."""
    apps.get_model("runs", "Parked").objects.filter(host="").update(host=settings.SESSION_HOST)


def tell_of_hosts(apps, schema_editor):
    """Whoever is told that an agent's account holds up work is told of a host that does."""
    for address in apps.get_model("runs", "NoticeAddress").objects.all():
        if "agent.held" in address.topics and "host.silent" not in address.topics:
            address.topics = [*address.topics, "host.silent"]
            address.save(update_fields=["topics"])


class Migration(migrations.Migration):
    dependencies = [("runs", "0078_gates_loops_and_hosts")]

    operations = [
        migrations.RunPython(took, migrations.RunPython.noop),
        migrations.RunPython(name_host, migrations.RunPython.noop),
        migrations.RunPython(tell_of_hosts, migrations.RunPython.noop),
    ]
