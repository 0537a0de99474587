"""Jobs, with those of what is at work; the columns of before stay for workers of that version."""

import django.db.models.deletion
from django.db import migrations, models


def move_to_jobs(apps, schema_editor):
    """What runs in a folder of before goes on as a job that nobody has finished."""
    rows = apps.get_model("runs", "CheckRun").objects.filter(is_running=True)
    jobs = apps.get_model("runs", "Job").objects
    for row in rows.select_related("run"):
        facts = {
            "project_id": row.run.project_id,
            "host": row.host,
            # Each has a heartbeat; one without would be nobody's.
            "owner": row.runner if row.beat_at else "",
            "beat_at": row.beat_at if row.runner else None,
            "losses": int(bool(row.trouble)),
            "requested_at": row.asked_at,
        }
        jobs.get_or_create(
            kind="check_run", subject=row.pk, finished_at=None, defaults=facts
        )


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0081_merge_only_passed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('attempt', 'attempt'), ('check_run', 'check_run')], max_length=30)),
                ('subject', models.BigIntegerField()),
                ('host', models.CharField(max_length=100)),
                ('owner', models.CharField(blank=True, default='', help_text='The process that works on it.', max_length=200)),
                ('beat_at', models.DateTimeField(blank=True, null=True)),
                ('token', models.PositiveBigIntegerField(default=0)),
                ('not_before', models.DateTimeField(blank=True, null=True)),
                ('deadline', models.DateTimeField(blank=True, null=True)),
                ('losses', models.PositiveIntegerField(default=0, help_text='How often the process that worked on it was gone.')),
                ('troubles', models.PositiveIntegerField(default=0, help_text='How often in a row it could not be done.')),
                ('requested_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to='runs.project')),
            ],
            options={
                'ordering': ['id'],
                'indexes': [models.Index(condition=models.Q(('finished_at', None)), fields=['host'], name='job_open'), models.Index(fields=['subject', 'kind'], name='job_subject')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('finished_at', None)), fields=('kind', 'subject'), name='job_one_unfinished'), models.CheckConstraint(condition=models.Q(models.Q(('beat_at', None), ('owner', '')), models.Q(models.Q(('owner', ''), _negated=True), ('beat_at__isnull', False)), _connector='OR'), name='job_owner_iff_heartbeat'), models.CheckConstraint(condition=models.Q(('finished_at', None), ('owner', ''), _connector='OR'), name='job_finished_has_no_owner')],
            },
        ),
        migrations.RunPython(move_to_jobs, migrations.RunPython.noop),
    ]
