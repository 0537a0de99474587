from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0074_limits_of_spending'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='nudged_at',
            field=models.DateTimeField(blank=True, help_text='When its agent was asked to deliver, since it had stopped without.', null=True),
        ),
        migrations.AddField(
            model_name='settings',
            name='nudges',
            field=models.BooleanField(default=True, help_text='An agent that stops without a pull request is asked once, in its own session, to open it or to say why not, before it counts as dead or waits for you.', verbose_name='ask agents that stop'),
        ),
    ]
