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
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='Times in a row that it was refused right after a start.'),
        ),
        migrations.AddField(
            model_name='project',
            name='reads_outsiders',
            field=models.BooleanField(db_default=False, default=False, help_text="Agents and reviewers are given everybody's comments on issues and pull requests. Off: only those of trusted authors and of people who belong to the repository: on GitHub its owners, collaborators and members of its organisation, on Gitea and Forgejo those who may write.", verbose_name='comments of everybody'),
        ),
    ]
