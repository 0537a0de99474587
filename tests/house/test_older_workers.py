"""Versions that follow each other work side by side on one database, while machines are upgraded.

A worker of the version before stores rows without the columns that it does not know: so each of those
is empty or filled by the database, and none that it knows goes.
"""

from __future__ import annotations

import pytest
from django.db import connection, migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.db.models import NOT_PROVIDED

APPS = ("runs", "builtin")
# The first version that works on several machines. Once no machine can have it any more, a later one.
OLDEST_BESIDE = {"runs": "0079_rows_of_before"}


def in_the_way(old: ProjectState, new: ProjectState) -> list[str]:
    """The columns of `new` that keep a worker that knows `old` from storing or reading rows."""
    found = []
    for key, before in old.models.items():
        name = ".".join(key)
        after = new.models.get(key)
        if after is None:
            found.append(f"{name} is gone")
            continue
        found += [f"{name}.{one} is gone" for one in before.fields if one not in after.fields]
        found += [
            f"{name}.{one} has no value where it is not given"
            for one, field in after.fields.items()
            if one not in before.fields and not _fills_itself(field)
        ]
    return found


def _fills_itself(field: models.Field) -> bool:  # type: ignore[type-arg]
    return bool(field.many_to_many or field.null or field.db_default is not NOT_PROVIDED)


@pytest.mark.django_db
def test_a_worker_of_the_version_before_can_store_rows_in_the_tables_of_this_one() -> None:
    loader = MigrationLoader(connection)
    ours = [node for node in loader.graph.leaf_nodes() if node[0] in APPS]
    then = [(app, OLDEST_BESIDE.get(app, name)) for app, name in ours]
    old, new = (loader.project_state(nodes) for nodes in (then, ours))
    assert in_the_way(old, new) == []


NOTICE = migrations.CreateModel("notice", [("id", models.AutoField(primary_key=True))])


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (migrations.AddField("notice", "at", models.DateTimeField(null=True)), []),
        (migrations.AddField("notice", "times", models.IntegerField(db_default=1)), []),
        (migrations.AddField("notice", "seen", models.ManyToManyField("runs.notice")), []),
        (migrations.CreateModel("other", [("id", models.AutoField(primary_key=True))]), []),
        (
            migrations.AddField("notice", "by", models.CharField(default="", max_length=9)),
            ["runs.notice.by has no value where it is not given"],
        ),
        (migrations.RemoveField("notice", "id"), ["runs.notice.id is gone"]),
        (migrations.DeleteModel("notice"), ["runs.notice is gone"]),
    ],
)
def test_what_would_be_in_its_way(
    change: migrations.operations.base.Operation, found: list[str]
) -> None:
    old = ProjectState()
    NOTICE.state_forwards("runs", old)
    new = old.clone()
    change.state_forwards("runs", new)
    assert in_the_way(old, new) == found
