import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0071_agents_own_numbers'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='amends',
            field=models.PositiveIntegerField(blank=True, help_text='The pull request that was open when it went on, which it adds commits to.', null=True),
        ),
        migrations.AddField(
            model_name='run',
            name='continues',
            field=models.ForeignKey(blank=True, help_text='The ended run whose branch and worktree it goes on with.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='continued_by', to='runs.run'),
        ),
        migrations.AddField(
            model_name='run',
            name='follow_up',
            field=models.TextField(blank=True, default='', help_text='What a person told its agent to go on with.'),
        ),
        migrations.AddField(
            model_name='run',
            name='head_before',
            field=models.CharField(blank=True, default='', help_text='Where its branch stood when it went on.', max_length=64),
        ),
        migrations.AddField(
            model_name='startrequest',
            name='continues',
            field=models.ForeignKey(blank=True, help_text='The ended run to go on with; empty: a run from scratch.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run'),
        ),
        migrations.AddField(
            model_name='startrequest',
            name='follow_up',
            field=models.TextField(blank=True, default=''),
        ),
        migrations.AddField(
            model_name='startrequest',
            name='wants_changes',
            field=models.BooleanField(default=False, help_text='Whether the text asks for changes of its open pull request.'),
        ),
        migrations.AlterField(
            model_name='startrequest',
            name='answer',
            field=models.CharField(blank=True, choices=[('', 'pending'), ('started', 'started'), ('nothing_ready', 'nothing_ready'), ('at_cap', 'at_cap'), ('no_tracker', 'no_tracker'), ('not_ready', 'not_ready'), ('tracker_failed', 'tracker_failed'), ('seam_failed', 'seam_failed'), ('logged_out', 'logged_out'), ('no_program', 'no_program'), ('agent_held', 'agent_held'), ('cannot_go_on', 'cannot_go_on'), ('start_failed', 'start_failed'), ('expired', 'expired')], default='', max_length=20),
        ),
        migrations.AddConstraint(
            model_name='startrequest',
            constraint=models.UniqueConstraint(condition=models.Q(('answer', ''), ('continues__isnull', False)), fields=('continues',), name='start_one_pending_a_run'),
        ),
    ]
