import django.db.models.deletion
import runs.domain.trying
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0046_unattended_claude'),
    ]

    operations = [
        migrations.AlterField(
            model_name='startrequest',
            name='answer',
            field=models.CharField(blank=True, choices=[('', 'pending'), ('started', 'started'), ('nothing_ready', 'nothing_ready'), ('at_cap', 'at_cap'), ('no_tracker', 'no_tracker'), ('not_ready', 'not_ready'), ('tracker_failed', 'tracker_failed'), ('seam_failed', 'seam_failed'), ('logged_out', 'logged_out'), ('no_program', 'no_program'), ('start_failed', 'start_failed'), ('expired', 'expired')], default='', max_length=20),
        ),
        migrations.CreateModel(
            name='AgentTrial',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('by', models.CharField(max_length=150)),
                ('mark', models.CharField(max_length=64)),
                ('state', models.CharField(choices=[('waiting', 'waiting'), ('running', 'running'), ('passed', 'passed'), ('failed', 'failed'), ('stopped', 'stopped')], default=runs.domain.trying.TrialState['WAITING'], max_length=10)),
                ('process', models.CharField(blank=True, default='', max_length=100)),
                ('is_stop_wanted', models.BooleanField(default=False)),
                ('steps', models.JSONField(default=list)),
                ('screen', models.TextField(blank=True, default='')),
                ('note', models.CharField(blank=True, default='', max_length=500)),
                ('asked_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('deadline', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('profile', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='runs.agentprofile')),
            ],
            options={
                'ordering': ['-id'],
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', (runs.domain.trying.TrialState['WAITING'], runs.domain.trying.TrialState['RUNNING']))), fields=('profile',), name='trial_one_open_per_agent'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at', None), ('state__in', (runs.domain.trying.TrialState['WAITING'], runs.domain.trying.TrialState['RUNNING']))), models.Q(models.Q(('state__in', (runs.domain.trying.TrialState['WAITING'], runs.domain.trying.TrialState['RUNNING'])), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='trial_ended_iff_over')],
            },
        ),
    ]
