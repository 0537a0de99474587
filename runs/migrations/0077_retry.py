from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0076_waits_and_budgets'),
    ]

    operations = [
        migrations.AddField(
            model_name='discarding',
            name='restarts',
            field=models.CharField(blank=True, default='', help_text='The issue of which a new run is asked for once this is done.', max_length=60),
        ),
    ]
