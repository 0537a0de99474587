from django.db import migrations, models


def mark_steps(apps, schema_editor):
    notices = apps.get_model('runs', 'Notice').objects
    notices.filter(kind__in=['run.step', 'run.output']).update(is_news=False)


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0007_clock_set'),
    ]

    operations = [
        migrations.AddField(
            model_name='notice',
            name='is_news',
            field=models.BooleanField(default=True, help_text='Told on pages of many runs; steps of one run are not.'),
        ),
        migrations.RunPython(mark_steps, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(condition=models.Q(('is_news', True)), fields=['-id'], name='notice_news'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(condition=models.Q(('is_news', True)), fields=['project', '-id'], name='notice_news_of_project'),
        ),
    ]
