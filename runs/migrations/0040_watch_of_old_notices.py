"""What was told of watch sessions before an entry knew its session. Safe to repeat."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.db import migrations
from django.db.models import OuterRef, Q, Subquery

AFTER = timedelta(seconds=60)
NAMED = re.compile(r"watch session ([0-9]{1,18}) ")


def fill(apps: Any, schema_editor: Any) -> None:
    notices = apps.get_model("runs", "Notice").objects.filter(watch=None)
    runs = apps.get_model("runs", "Run").objects.filter(watch__isnull=False)
    own = runs.filter(pk=OuterRef("run")).values("watch")[:1]
    notices.filter(run__in=runs.values("pk")).update(watch=Subquery(own))
    for session in apps.get_model("runs", "WatchSession").objects.order_by("pk"):
        told = notices.filter(project=session.project_id, run=None, at__gte=session.opened_at)
        # The next session of a project began after this one ended, and is filled after it.
        until = Q(at__lte=session.ended_at + AFTER) if session.ended_at else Q()
        told.filter(until, Q(kind__startswith="validation.") | Q(kind="watch.idle")).update(
            watch=session
        )
        for notice in told.filter(kind__startswith="watch.").iterator():
            named = NAMED.match(notice.text)
            if named and int(named[1]) == session.pk:
                type(notice).objects.filter(pk=notice.pk).update(watch=session)


class Migration(migrations.Migration):
    dependencies = [("runs", "0039_notice_of_watch")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
