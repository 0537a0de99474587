from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0095_retired_files'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='background_agents',
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='How many agents it says are at work in the background.'),
        ),
        migrations.AddField(
            model_name='run',
            name='vain_resumes',
            field=models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='Times in a row that it was refused as soon as it was started again.'),
        ),
    ]
