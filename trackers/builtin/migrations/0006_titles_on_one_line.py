"""Titles that were kept before they were cleaned: control characters and what turns text go."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from trackers import plain


def clean(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for name in ("Issue", "PullRequest"):
        rows = apps.get_model("builtin", name).objects
        odd = [
            (pk, title)
            for pk, title in rows.values_list("pk", "title").iterator()
            if not title.isprintable()
        ]
        for pk, title in odd:
            rows.filter(pk=pk).update(title=plain.line(title))


class Migration(migrations.Migration):
    dependencies = [("builtin", "0005_labelled_by")]

    operations = [migrations.RunPython(clean, migrations.RunPython.noop)]
